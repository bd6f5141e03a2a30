# Estimates from randomized reports, in base R without packages.
#
#   source("ldp.R")
#   ldp_proportions(counts, channel)              shares of one question
#   ldp_crosstab(table, channel_row, channel_col) joint shares of two questions
#   ldp_difference(a, b, channel)                 shares of group a minus those of group b
#
# A channel is either c(p = , q = ), as channels.json states it for questions whose reports name
# answers, or a matrix P with P[i, j] = P(report j | answer i), from weights/ID.csv.
# The numbers equal those of survey.estimator in Python; survey/methods/ explains the formulas.
# Respondents must have answered truthfully and independently; the data cannot show whether they
# did. MIT license.

#' Shares of the true answers to one question, from counts of reports.
#'
#' @param counts How many reports name each answer (for a matrix: how many are report j); names
#'   become the labels of the result.
#' @param channel c(p, q), or a matrix with one row per answer and one column per report.
#' @param n Number of reports. Needed only for bits; otherwise the counts determine it.
#' @param bits Whether reports have one bit per answer (multiple choice); counts are then the ones.
#' @param d Number of answers that each report names (subset selection), otherwise 1.
#' @param level Coverage of each interval, or of all together if `simultaneous` (Bonferroni).
#' @param interval "feldman-cousins" (exact), "wilson-hull", "wilson" or "clopper-pearson". A matrix
#'   other than 2 by 2 has the score interval only.
#' @param simultaneous Whether the intervals of all answers cover together.
#' @return A data frame: option, estimate (unbiased, may lie outside 0 to 1), std_error, conf_low,
#'   conf_high, n_effective, n, level, method.
#' @examples ldp_proportions(c(yes = 700, no = 1300), c(p = 0.75, q = 0.25))
ldp_proportions <- function(counts, channel, n = NULL, d = 1, bits = FALSE, level = 0.95,
                            interval = "feldman-cousins", simultaneous = FALSE) {
  channel <- ldp_check_channel(channel)
  level <- ldp_check_level(level)
  if (!interval %in% c("feldman-cousins", "wilson-hull", "wilson", "clopper-pearson"))
    stop("unknown interval '", interval, "'")
  if (is.matrix(channel) && !all(dim(channel) == 2)) {
    if (interval != "feldman-cousins") stop("a matrix has the score interval only")
    return(ldp_table_shares(counts, channel, n, level, simultaneous))
  }
  size <- if (is.matrix(channel)) 2 else length(counts)
  total <- ldp_check_counts(counts, size, n, if (bits) NULL else d)
  k <- length(counts)
  if (k < 2 && !bits) stop("counts must have at least two entries")
  if (is.matrix(channel)) {
    p <- diag(channel)
    q <- c(channel[2, 1], channel[1, 2])
  } else {
    if (!bits) ldp_check_fit(channel, k, d)
    p <- rep(channel[["p"]], k)
    q <- rep(channel[["q"]], k)
  }
  # Two options of a question are complementary: both intervals miss together.
  each <- if (simultaneous && (k != 2 || bits)) 1 - (1 - level) / k else level
  f <- as.numeric(counts) / total
  # pi = (f - q)/(p - q)
  estimate <- (f - q) / (p - q)
  moments <- ldp_binary_moments(p, q)
  ends <- vapply(seq_len(k), function(j) {
    ldp_share_interval(counts[[j]], total, p[j], q[j], each, interval)
  }, numeric(2))
  ldp_frame(counts, estimate, ldp_binary_error(f, total, p, q), ends[1, ], ends[2, ],
            ldp_effective(estimate, total, moments), total, level,
            if (simultaneous) paste0(interval, ", simultaneous") else interval)
}

#' Joint shares of the true answers to two questions that were randomized separately.
#'
#' @param table Matrix of counts: table[i, j] reports are report i of the first and report j of the
#'   second question, as `table()` returns it. Its dimnames become the labels of the result.
#' @param channel_row,channel_col The channels of the two questions, as in `ldp_proportions`.
#' @param level Coverage of the interval of each cell.
#' @return A data frame with one row per cell: row, column, estimate, std_error, conf_low,
#'   conf_high, n, level, method.
#' @examples
#' coin <- c(p = 0.75, q = 0.25)
#' ldp_crosstab(matrix(c(300, 200, 200, 300), 2), coin, coin)
ldp_crosstab <- function(table, channel_row, channel_col, level = 0.95) {
  level <- ldp_check_level(level)
  if (length(dim(table)) != 2) stop("table must be a matrix of counts")
  axes <- list(ldp_axis(ldp_check_channel(channel_row), nrow(table)),
               ldp_axis(ldp_check_channel(channel_col), ncol(table)))
  n <- ldp_check_counts(as.vector(table), length(table), NULL, 1)
  counts <- matrix(as.numeric(table), nrow(table))
  shares <- counts / n
  a <- axes[[1]]
  b <- axes[[2]]
  # P = A F B', with the pseudo-values A and B of both questions
  estimate <- a$means %*% shares %*% t(b$means)
  square <- a$means^2 %*% shares %*% t(b$means^2)
  cube <- a$means^3 %*% shares %*% t(b$means^3)
  at_truth <- outer(diag(a$by_truth), diag(b$by_truth))
  bounds <- ldp_moment_range(a$by_truth, b$by_truth)
  x <- pmin(pmax(estimate, 0), 1)
  # E[g^2] among the other cells: (mean of g^2 - x at_truth)/(1 - x), within its possible range
  elsewhere <- (square - x * at_truth) / pmax(1 - x, 1e-12)
  elsewhere <- pmin(pmax(elsewhere, bounds$minimum), bounds$maximum)
  minimum <- x * (at_truth - 1) + (1 - x) * elsewhere
  variance <- ldp_observed_variance(square - estimate^2, square, minimum)
  # skewness E(g - x)^3/sd^3
  possible <- x * at_truth + (1 - x) * elsewhere - x^2
  spread <- pmax(possible, square - estimate^2, 1e-12)
  skewness <- (cube - 3 * estimate * square + 2 * estimate^3) / spread^1.5
  shift <- estimate
  for (i in seq_len(nrow(estimate))) for (j in seq_len(ncol(estimate))) {
    classes <- a$classes(i) %*% counts %*% t(b$classes(j)) / n
    values <- outer(a$values(i), b$values(j)) / n
    # Row by row, as Python reads a table: the first of equally frequent values counts.
    shift[i, j] <- ldp_lattice_shift(as.vector(t(values)), as.vector(t(classes)), n, level)
  }
  student <- min(qt((1 + level) / 2, max(n - 1, 1)), 8)
  z <- ldp_z(2 * pnorm(student) - 1)
  # At the share x, the mean of g^2 is about square - slope (estimate - x), within its possible range.
  slope <- (cube - square * estimate) / pmax(square - estimate^2, 1e-12)
  ends <- function(side, at_truth, elsewhere) {
    at <- pmin(pmax(estimate + side * shift, 0), 1)
    ldp_score_ends(at, n, at_truth, elsewhere, z, skewness)[[if (side < 0) "low" else "high"]]
  }
  expected <- lapply(c(-1, 1), ends, square + slope * (1 - estimate), square - slope * estimate)
  smallest <- lapply(c(-1, 1), ends, at_truth, bounds$minimum)
  largest <- lapply(c(-1, 1), ends, at_truth, bounds$maximum)
  low <- pmin(smallest[[1]], pmax(expected[[1]], largest[[1]]))
  high <- pmax(smallest[[2]], pmin(expected[[2]], largest[[2]]))
  labels <- ldp_cell_labels(table, estimate)
  order <- as.vector(t(matrix(seq_along(estimate), nrow(estimate))))
  data.frame(row = labels$row[order], column = labels$column[order], estimate = estimate[order],
             std_error = sqrt(variance / n)[order], conf_low = pmin(pmax(low, 0), 1)[order],
             conf_high = pmin(pmax(high, 0), 1)[order], n = n, level = level, method = "linear")
}

#' Difference of each answer's share between two groups of different people, a minus b.
#'
#' @param a,b Counts of the two groups, as in `ldp_proportions`. If both have names, b is put into
#'   the order of a; otherwise both must have the same order.
#' @param channel The channel of group a; `channel_b` that of group b, by default the same. NULL
#'   means that the group answered without randomization.
#' @param n_a,n_b Numbers of reports; needed only for bits.
#' @param bits Whether reports have one bit per answer (multiple choice).
#' @param d Number of answers that each report names (subset selection), otherwise 1.
#' @param level Coverage of each interval.
#' @return A data frame: option, estimate, std_error, conf_low, conf_high, z, p_value (two-sided, of
#'   equal shares; below 1 - level where the interval excludes 0), share_a, share_b, n_a, n_b,
#'   level, method.
#' @examples ldp_difference(c(500, 500), c(400, 600), c(p = 0.75, q = 0.25))
ldp_difference <- function(a, b, channel, channel_b = channel, n_a = NULL, n_b = NULL, d = 1,
                           bits = FALSE, level = 0.95) {
  level <- ldp_check_level(level)
  b <- ldp_align(b, names(a))
  first <- ldp_group(a, channel, n_a, d, bits)
  second <- ldp_group(b, channel_b, n_b, d, bits)
  if (length(first$share) != length(second$share)) stop("both groups must have the same options")
  z_level <- ldp_z(level)
  # h = C (max(r_a, r_b) - .18 min(r_a, r_b)), r the effect of one report: counts are whole numbers
  effect_a <- first$reach / first$n
  effect_b <- second$reach / second$n
  shift <- ldp_continuity(level) * (pmax(effect_a, effect_b) - 0.18 * pmin(effect_a, effect_b))
  # The share x of group a if the difference is d, weighted by the precisions, in the possible range
  weight_a <- first$n / pmax(first$at_truth, first$elsewhere)
  weight_b <- second$n / pmax(second$at_truth, second$elsewhere)
  variance <- function(group, x)
    pmax(x * group$at_truth + (1 - x) * group$elsewhere - x^2, 0) / group$n
  error_at <- function(d) {
    x <- (weight_a * first$share + weight_b * (second$share + d)) / (weight_a + weight_b)
    x <- pmin(pmax(x, pmax(0, d)), pmin(1, 1 + d))
    sqrt(variance(first, x) + variance(second, x - d))
  }
  estimate <- first$share - second$share
  D <- pmin(pmax(estimate, -1), 1)
  accepted <- function(d) abs(D - d) <= z_level * error_at(d) + shift
  low <- ldp_last_accepted(D, -1, accepted)
  high <- ldp_last_accepted(D, 1, accepted)
  # z = sign(D) max(|D| - h, 0)/SE(0)
  error <- error_at(rep(0, length(D)))
  z <- sign(D) * ifelse(error > 0, pmax(abs(D) - shift, 0) / error, 0)
  data.frame(option = ldp_labels(a), estimate = estimate,
             std_error = sqrt(first$error^2 + second$error^2), conf_low = low, conf_high = high,
             z = z, p_value = 2 * pnorm(-abs(z)), share_a = first$share, share_b = second$share,
             n_a = first$n, n_b = second$n, level = level, method = "score")
}

# ---- Checks ----

ldp_check_channel <- function(channel) {
  if (is.matrix(channel)) {
    if (!is.numeric(channel) || any(!is.finite(channel)) || any(channel < 0))
      stop("a channel's matrix must have probabilities")
    if (any(abs(rowSums(channel) - 1) > 1e-9))
      stop("the rows of a channel's matrix must add up to 1: divide weights by their row sums")
    return(unname(channel))
  }
  channel <- unlist(channel)
  if (!is.numeric(channel) || !all(c("p", "q") %in% names(channel)))
    stop("channel must be c(p = , q = ) or a matrix")
  p <- channel[["p"]]
  q <- channel[["q"]]
  if (!all(is.finite(c(p, q))) || min(p, q) < 0 || max(p, q) > 1)
    stop("p and q must be probabilities")
  if (p == q) stop("p = q: the reports contain no information about the answers")
  channel
}

# A report names d answers: the true one with probability p, each other one with probability q.
ldp_check_fit <- function(channel, k, d) {
  named <- channel[["p"]] + (k - 1) * channel[["q"]]
  if (!is.numeric(d) || length(d) != 1 || is.na(d) || abs(named - d) > 1e-9)
    stop("p and q do not fit counts of ", k, " answers: p + (k - 1) q must be ", d, " (found ",
         format(named, digits = 12), "). Count every answer, also \"Prefer not to say\", and copy ",
         "all digits of p and q")
}

# Return the counts in the order of the names, if both have names.
ldp_align <- function(counts, wanted) {
  if (is.null(names(counts)) || is.null(wanted)) return(counts)
  if (anyDuplicated(wanted) || anyDuplicated(names(counts)))
    stop("the names of the counts must differ from each other")
  if (!setequal(names(counts), wanted))
    stop("both groups must have the same options (found ", toString(wanted), " and ",
         toString(names(counts)), ")")
  counts[wanted]
}

ldp_check_level <- function(level) {
  if (!is.numeric(level) || length(level) != 1 || is.na(level) || level < 1e-6 || level > 1 - 1e-9)
    stop("level must be between 0 and 1, for example 0.95")
  level
}

# Return the number of reports: the total divided by what each report adds, or the stated n.
ldp_check_counts <- function(counts, size, n, per_report) {
  if (!is.numeric(counts)) stop("counts must be whole numbers")
  if (length(counts) != size) stop("counts must have ", size, " entries, not ", length(counts))
  if (any(!is.finite(counts)) || any(counts != floor(counts)) || any(counts < 0))
    stop("counts must be whole numbers of at least 0")
  if (is.null(per_report)) {
    if (is.null(n)) stop("counts of ones do not determine n: state the number of reports")
    total <- n
  } else {
    if (sum(counts) %% per_report != 0) stop("the counts must add up to a multiple of d")
    total <- sum(counts) / per_report
  }
  if (!is.null(n) && n != total) stop("n = ", n, ", but the counts come from ", total, " reports")
  if (total < 1 || total != floor(total)) stop("an estimate needs at least one report")
  if (any(counts > total))
    stop("a count is larger than the number of reports")
  total
}

# ---- Moments and errors ----

# g = (supported - q)/(p - q): E[g^2 | s] = (s (1-q)^2 + (1-s) q^2)/(p-q)^2, s = p or q
ldp_binary_moments <- function(p, q) {
  list(at_truth = (p * (1 - q)^2 + (1 - p) * q^2) / (p - q)^2,
       elsewhere = q * (1 - q) / (p - q)^2)
}

# sqrt(f(1-f)/n)/|p-q|; where all reports are identical, the error of randomization alone
ldp_binary_error <- function(f, n, p, q) {
  m <- ldp_binary_moments(p, q)
  x <- pmin(pmax((f - q) / (p - q), 0), 1)
  minimum <- x * (m$at_truth - 1) + (1 - x) * m$elsewhere
  sqrt(ldp_observed_variance(f * (1 - f) / (p - q)^2, 1 / (p - q)^2, minimum) / n)
}

ldp_observed_variance <- function(variance, square, minimum) {
  is_identical <- variance <= 1e-12 * square
  variance[is_identical] <- pmax(minimum, 0)[is_identical]
  variance
}

# Answers without randomization that would be as informative: pi(1-pi)/SE^2
ldp_effective <- function(estimate, n, moments) {
  x <- pmin(pmax(estimate, 0.01), 0.99)
  n * x * (1 - x) / (x * moments$at_truth + (1 - x) * moments$elsewhere - x^2)
}

# G = (P D P')^-1 P D with D = 1/(mean report shares): pseudo-values with P G' = I
ldp_left_inverse <- function(P) {
  root <- sqrt(colMeans(P))
  if (nrow(P) > ncol(P) || any(root == 0)) stop("different shares give the same reports")
  QR <- qr(t(sweep(P, 2, root, "/")), tol = 1e-12)
  if (QR$rank < nrow(P)) stop("different shares give the same reports")
  G <- sweep(backsolve(qr.R(QR), t(qr.Q(QR))), 2, root, "/")
  G <- G[order(QR$pivot), , drop = FALSE]
  if (max(abs(P %*% t(G) - diag(nrow(P)))) > 1e-9 * nrow(P))
    stop("different shares give the same reports")
  G
}

# ---- Tables ----

ldp_table_shares <- function(counts, P, n, level, simultaneous) {
  n <- ldp_check_counts(counts, ncol(P), n, 1)
  G <- ldp_left_inverse(P)
  k <- nrow(G)
  each <- if (simultaneous) 1 - (1 - level) / k else level
  f <- as.numeric(counts) / n
  estimate <- as.vector(G %*% f)
  square <- as.vector(G^2 %*% f)
  # E[g_j^2 | truth i]: at truth j, and the largest at the others
  by_truth <- G^2 %*% t(P)
  at_truth <- diag(by_truth)
  diag(by_truth) <- 0
  moments <- list(at_truth = at_truth, elsewhere = apply(by_truth, 1, max))
  x <- pmin(pmax(estimate, 0), 1)
  minimum <- x * (moments$at_truth - 1) + (1 - x) * moments$elsewhere
  variance <- ldp_observed_variance(square - estimate^2, square, minimum)
  shift <- vapply(seq_len(k), function(j) ldp_lattice_shift(G[j, ] / n, f, n, each), numeric(1))
  z <- ldp_z(each)
  low <- ldp_score_ends(pmin(pmax(estimate - shift, 0), 1), n, moments$at_truth,
                        moments$elsewhere, z)$low
  high <- ldp_score_ends(pmin(pmax(estimate + shift, 0), 1), n, moments$at_truth,
                         moments$elsewhere, z)$high
  if (k != length(counts)) counts <- seq_len(k) # reports do not name answers
  ldp_frame(counts, estimate, sqrt(variance / n), pmin(pmax(low, 0), 1), pmin(pmax(high, 0), 1),
            ldp_effective(estimate, n, moments), n, level,
            if (simultaneous) "score, simultaneous" else "score")
}

# One question of a table: pseudo-values (truths x reports), E[g_a^2 | truth i] (row a, column i),
# and the classes of reports with equal pseudo-values for one truth.
ldp_axis <- function(channel, size) {
  if (is.matrix(channel)) {
    if (ncol(channel) != size) stop("the table must have one row or column per report")
    G <- ldp_left_inverse(channel)
    return(list(means = G, by_truth = G^2 %*% t(channel), classes = function(i) diag(ncol(G)),
                values = function(i) G[i, ]))
  }
  if (size < 2) stop("a question needs at least two answers")
  ldp_check_fit(channel, size, 1)
  p <- channel[["p"]]
  q <- channel[["q"]]
  moments <- ldp_binary_moments(p, q)
  by_truth <- matrix(moments$elsewhere, size, size)
  diag(by_truth) <- moments$at_truth
  list(means = (diag(size) - q) / (p - q), by_truth = by_truth,
       classes = function(i) rbind(diag(size)[i, ], 1 - diag(size)[i, ]),
       values = function(i) c(1 - q, -q) / (p - q))
}

# Range of E[(g_a h_b)^2] at the other cells: at least one question has another truth.
ldp_moment_range <- function(first, second) {
  extreme <- function(by_truth, fill, choose) {
    diag(by_truth) <- fill
    apply(by_truth, 1, choose)
  }
  combined <- function(fill, choose, pairwise) {
    other_a <- extreme(first, fill, choose)
    other_b <- extreme(second, fill, choose)
    any_a <- pairwise(diag(first), other_a)
    any_b <- pairwise(diag(second), other_b)
    pairwise(outer(other_a, any_b), outer(any_a, other_b))
  }
  list(minimum = combined(Inf, min, pmin), maximum = combined(0, max, pmax))
}

# ---- Groups of a difference ----

ldp_group <- function(counts, channel, n, d, bits) {
  if (is.null(channel)) {
    channel <- c(p = 1, q = 0)
    d <- 1
  }
  channel <- ldp_check_channel(channel)
  if (!is.matrix(channel)) {
    total <- ldp_check_counts(counts, length(counts), n, if (bits) NULL else d)
    if (length(counts) < 2) stop("counts must have at least two entries")
    if (!bits) ldp_check_fit(channel, length(counts), d)
    p <- channel[["p"]]
    q <- channel[["q"]]
    f <- as.numeric(counts) / total
    moments <- ldp_binary_moments(p, q)
    k <- length(f)
    return(list(share = (f - q) / (p - q), error = ldp_binary_error(f, total, rep(p, k), rep(q, k)),
                at_truth = rep(moments$at_truth, k), elsewhere = rep(moments$elsewhere, k),
                reach = rep(1 / abs(p - q), k), n = total))
  }
  n <- ldp_check_counts(counts, ncol(channel), n, 1)
  G <- ldp_left_inverse(channel)
  f <- as.numeric(counts) / n
  share <- as.vector(G %*% f)
  square <- as.vector(G^2 %*% f)
  by_truth <- G^2 %*% t(channel)
  at_truth <- diag(by_truth)
  x <- pmin(pmax(share, 0), 1)
  others <- function(fill, choose) {
    diag(by_truth) <- fill
    apply(by_truth, 1, choose)
  }
  elsewhere <- (square - x * at_truth) / pmax(1 - x, 1e-12)
  elsewhere <- pmin(pmax(elsewhere, others(Inf, min)), others(0, max))
  minimum <- x * (at_truth - 1) + (1 - x) * elsewhere
  error <- sqrt(ldp_observed_variance(square - share^2, square, minimum) / n)
  list(share = share, error = error, at_truth = at_truth, elsewhere = elsewhere,
       reach = apply(G, 1, function(g) max(g) - min(g)), n = n)
}

# Where acceptance ends between the accepted estimate and an end of the range, by 48 halvings.
ldp_last_accepted <- function(start, end, accepted) {
  outside <- rep(end, length(start))
  inside <- ifelse(accepted(outside), outside, start)
  for (step in 1:48) {
    middle <- (inside + outside) / 2
    is_accepted <- accepted(middle)
    inside <- ifelse(is_accepted, middle, inside)
    outside <- ifelse(is_accepted, outside, middle)
  }
  outside
}

# ---- Score intervals ----

ldp_z <- function(level) qnorm((1 + level) / 2)

# C = max(1/2, 1 - z sqrt(-log level)): by how many reports an end moves out
ldp_continuity <- function(level) max(0.5, 1 - ldp_z(level) * sqrt(-log(level)))

# The x with n (est - x)^2 <= z^2 (x at_truth + (1-x) elsewhere - x^2). The end on the side of the
# skewness has the quantile z + |skew| (z^2 - 1)/(6 sqrt n), at most z + 2.
ldp_score_ends <- function(estimate, n, at_truth, elsewhere, z, skewness = 0) {
  shift <- skewness * (z^2 - 1) / (6 * sqrt(n))
  ends <- function(quantile, side) {
    z2 <- quantile^2
    slope <- at_truth - elsewhere
    a <- n + z2
    b <- n * estimate + z2 * slope / 2
    variance <- pmax(elsewhere + slope * estimate - estimate^2, 0)
    root <- sqrt(z2 * (n * variance + z2 * (slope^2 / 4 + elsewhere)))
    (b + side * root) / a
  }
  list(low = ends(z + pmin(pmax(shift, 0), 2), -1), high = ends(z + pmin(pmax(-shift, 0), 2), 1))
}

# Counts are whole numbers: an end moves out by the largest C h |phi(2 pi/h)| over the jumps h
# between the most frequent value of a report and the others; phi is the characteristic function.
ldp_lattice_shift <- function(values, shares, n, level) {
  jumps <- sort(abs(values - values[which.max(shares)]))
  if (length(jumps) > 8) jumps <- jumps[round(0:7 * ((length(jumps) - 1) / 7)) + 1]
  jumps <- jumps[jumps > 1e-9 * jumps[length(jumps)]]
  if (!length(jumps)) return(0)
  damping <- vapply(2 * pi / jumps, function(u) {
    length <- sqrt(sum(cos(u * values) * shares)^2 + sum(sin(u * values) * shares)^2)
    min(length, 1)^n
  }, numeric(1))
  ldp_continuity(level) * max(jumps * damping)
}

# ---- Intervals of a binomial share of reports, mapped to the share of answers ----

ldp_share_interval <- function(c, n, p, q, level, interval) {
  floor <- min(p, q)
  ceiling <- max(p, q)
  ends <- switch(interval,
    "feldman-cousins" = ldp_feldman_cousins(c, n, floor, ceiling, level),
    "wilson" = ldp_wilson(c / n, n, ldp_z(level)),
    "wilson-hull" = ldp_hull(ldp_wilson(c / n, n, ldp_z(level)), c, n, floor, ceiling, level),
    "clopper-pearson" = ldp_hull(ldp_clopper_pearson(c, n, level), c, n, floor, ceiling, level))
  # pi = (lambda - q)/(p - q), clipped to [0, 1]
  pmin(pmax(sort((ends - q) / (p - q)), 0), 1)
}

# (f + z^2/2n -+ z sqrt(f(1-f)/n + z^2/4n^2))/(1 + z^2/n)
ldp_wilson <- function(f, n, z) {
  centre <- f + z^2 / (2 * n)
  half <- z * sqrt(f * (1 - f) / n + z^2 / (4 * n^2))
  c(centre - half, centre + half) / (1 + z^2 / n)
}

# Quantiles of Beta(c, n-c+1) at alpha/2 and of Beta(c+1, n-c) at 1 - alpha/2
ldp_clopper_pearson <- function(c, n, level) {
  tail <- (1 - level) / 2
  c(if (c > 0) qbeta(tail, c, n - c + 1) else 0, if (c < n) 1 - qbeta(tail, n - c, c + 1) else 1)
}

# Move the ends inwards where a share of reports outside [floor, ceiling] would leave no width.
ldp_hull <- function(ends, c, n, floor, ceiling, level) {
  inner <- ldp_likelihood_ends(c, n, floor, ceiling, level)
  c(min(ends[1], inner[1], na.rm = TRUE), max(ends[2], inner[2], na.rm = TRUE))
}

ldp_likelihood_ends <- function(c, n, floor, ceiling, level) {
  ends <- c(NA_real_, NA_real_)
  if (c <= n * floor) ends[2] <- min(ldp_likelihood_reach(c, n, floor, level), ceiling, na.rm = TRUE)
  if (c >= n * ceiling)
    ends[1] <- max(1 - ldp_likelihood_reach(n - c, n, 1 - ceiling, level), floor, na.rm = TRUE)
  ends
}

# The lambda > a with log L(a; c) - log L(lambda; c) = z^2/2, for c <= n a, by Newton's method in
# theta = logit(lambda)
ldp_likelihood_reach <- function(c, n, a, level) {
  if (a <= 0) a <- .Machine$double.xmin
  z <- ldp_z(level)
  start <- qlogis(a)
  theta <- qlogis(ldp_wilson(a, n, z)[2])
  log1pexp <- function(x) max(x, 0) + log1p(exp(-abs(x)))
  for (step in 1:50) {
    rise <- log1pexp(theta) - log1pexp(start)
    move <- (c * (theta - start) - n * rise + z^2 / 2) / (n * plogis(theta) - c)
    theta <- theta + move
    if (abs(move) < 1e-12) break
  }
  plogis(theta)
}

# Feldman and Cousins 1998, for the share lambda of reports in [floor, ceiling]
ldp_feldman_cousins <- function(c, n, floor, ceiling, level) {
  low <- ldp_lower_end(c, n, floor, ceiling, level)
  mirrored <- ldp_lower_end(n - c, n, 1 - ceiling, 1 - floor, level)
  high <- if (!is.nan(mirrored) && mirrored == 1 - ceiling) ceiling else 1 - mirrored
  if (!isTRUE(min(high, ceiling) > max(low, floor))) {
    reach <- ldp_likelihood_ends(c, n, floor, ceiling, level)
    low <- min(low, reach[1], na.rm = TRUE)
    high <- max(high, reach[2], na.rm = TRUE)
  }
  c(low, high)
}

# The smallest lambda in [a, b] at which the outcome c is accepted
ldp_lower_end <- function(c, n, a, b, level) {
  if (c <= n * a) return(a)
  # l(c) = c log x + (n - c) log(1 - x) at x = c/n, clipped to [a, b]
  best <- function(c) {
    x <- min(max(c / n, a), b)
    c * log(x) + (n - c) * log1p(-x)
  }
  # The lambda at which m < c ranks as high as c: logit(lambda) = (l(c) - l(m))/(c - m)
  overtaking <- function(m) plogis((best(c) - best(m)) / (c - m))
  # P(m <= X < c), X ~ Binomial(n, share)
  between <- function(m, share)
    pbinom(c - 1, n, share) - (if (m > 0) pbinom(m - 1, n, share) else 0)
  m <- ldp_first_accepted(c, n, a, b, level, overtaking, between)
  clip <- function(x) min(max(x, a), b)
  upper <- if (m < n * b) clip(overtaking(m)) else NaN
  if (!is.nan(upper) && between(m, upper) < level) {
    lower <- if (m > 0) clip(overtaking(m - 1)) else a
    tolerance <- 1e-5 * sqrt(upper * (1 - lower) / n)
    high <- upper
    while (high - lower > tolerance) {
      middle <- (lower + high) / 2
      if (between(m, middle) >= level) lower <- middle else high <- middle
    }
    upper <- lower
  }
  # Rounding must not leave a gap between the ends.
  if (is.nan(upper)) NaN else clip(upper - 1e-6 * sqrt(upper * (1 - upper) / n))
}

# The first m in [0, c) with P(m < X < c; the lambda where m overtakes c) < level
ldp_first_accepted <- function(c, n, a, b, level, overtaking, between) {
  first <- 0
  last <- c - 1
  x <- min(max(c / n, a), b)
  deviation <- sqrt(n * x * (1 - x))
  step <- 1 + trunc(deviation / 20)
  m <- min(max(c - ceiling(2 * ldp_z(level) * deviation), 0), last)
  while (first < last) {
    is_accepted <- between(m + 1, overtaking(m)) < level
    if (is_accepted) last <- m else first <- min(m + 1, last)
    halfway <- (first + last) %/% 2
    m <- if (is_accepted) max(m - step, halfway) else min(m + step, halfway)
    step <- min(4 * step, n)
  }
  first
}

# ---- Labels ----

ldp_labels <- function(counts) if (is.null(names(counts))) seq_along(counts) else names(counts)

ldp_cell_labels <- function(table, estimate) {
  labels <- function(axis) {
    names <- dimnames(table)[[axis]]
    if (length(names) == dim(estimate)[axis]) names else seq_len(dim(estimate)[axis])
  }
  list(row = labels(1)[row(estimate)], column = labels(2)[col(estimate)])
}

ldp_frame <- function(counts, estimate, std_error, low, high, n_effective, n, level, method) {
  data.frame(option = ldp_labels(counts), estimate = unname(estimate),
             std_error = unname(std_error), conf_low = unname(low), conf_high = unname(high),
             n_effective = unname(n_effective), n = n, level = level, method = method)
}
