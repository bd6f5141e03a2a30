#!/usr/bin/env Rscript
# Recompute every published share, mean and interval from the files beside this script.
#
# Usage: Rscript replicate.R [FOLDER]. Needs R 3.6 or newer and no packages. replicate.py does the
# same in Python.
#
# Input: reports.csv (the randomized reports), channels.csv (the probabilities of the
# randomization), questions.csv, options.csv and answers.csv (what was asked), values.csv (numbers
# per report whose average is an estimate), displayed.csv (displayed distributions), published.csv
# (the published figures), manifest.json (hashes). The script prints a line per figure and exits with
# 1 if one differs in the printed digits, or if a file is not the one that the manifest describes.
#
# Symbols: n reports; f the share of reports of a kind; p and q the probabilities that a report names
# an option that was chosen, and one that was not; D = p - q; z the normal quantile of the level.

# --- Files ---------------------------------------------------------------------------------------

read_csv <- function(folder, name) {
  read.csv(file.path(folder, name), colClasses = "character", check.names = FALSE,
           na.strings = character(0), encoding = "UTF-8")
}

read_survey <- function(folder) {
  survey <- new.env()
  survey$folder <- folder
  survey$published <- read_csv(folder, "published.csv")
  questions <- read_csv(folder, "questions.csv")
  survey$questions <- split(questions, questions$question_id)
  options <- read_csv(folder, "options.csv")
  survey$options <- split(options, options$question_id)
  answers <- read_csv(folder, "answers.csv")
  survey$answers <- split(answers, answers$question_id)
  channels <- read_csv(folder, "channels.csv")
  survey$matrices <- split(channels[channels$per == "answer", ],
                           channels$question_id[channels$per == "answer"])
  survey$chances <- channels[channels$per == "option" & channels$truth == "1" &
                               channels$report == "1", ]
  displayed <- read_csv(folder, "displayed.csv")
  survey$displayed <- split(displayed, paste(displayed$scope, displayed$stratum,
                                             displayed$question_id, sep = "\t"))
  values <- read_csv(folder, "values.csv")
  survey$means <- unique(values[values$statistic == "mean", c("question_id", "base")])
  survey$values <- split(values, value_key(values))
  survey$reports <- read_csv(folder, "reports.csv")
  survey$cache <- new.env()
  survey
}

value_key <- function(rows) {
  paste(rows$scope, rows$stratum, rows$question_id, rows$statistic, rows$base, rows$option_id,
        sep = "\t")
}

# Return the rows of a statistic; those of all reports if a stratum has no other ones.
values_of <- function(survey, scope, stratum, question, statistic, base, option) {
  key <- function(...) paste(..., question, statistic, base, option, sep = "\t")
  rows <- survey$values[[key(scope, stratum)]]
  if (is.null(rows)) survey$values[[key("all", "")]] else rows
}

# Return the cells of a question that are not empty, of all reports or of one stratum.
cells_of <- function(survey, scope, stratum, question) {
  cells <- survey$reports[[question]]
  if (scope == "stratum") cells <- cells[survey$reports[["_stratum"]] == stratum]
  cells[cells != ""]
}

# Return P(report | truth), a row per truth.
matrix_of <- function(survey, question) {
  name <- paste("matrix", question)
  if (is.null(survey$cache[[name]])) {
    rows <- survey$matrices[[question]]
    if (is.null(rows)) {
      # A large table: its integer weights, divided by their sum per row
      file <- file.path(survey$folder, "weights", paste0(question, ".csv"))
      weights <- as.matrix(read.csv(file, check.names = FALSE)[, -1])
      survey$cache[[name]] <- unname(weights / rowSums(weights))
      return(survey$cache[[name]])
    }
    truth <- as.integer(rows$truth) + 1
    report <- as.integer(rows$report) + 1
    P <- matrix(0, max(truth), max(report))
    P[cbind(truth, report)] <- as.numeric(rows$probability)
    survey$cache[[name]] <- P
  }
  survey$cache[[name]]
}

# Return the bits of cells such as "0 1 0", a row per report.
bits_of <- function(cells) {
  bits <- strsplit(cells, " ", fixed = TRUE)
  matrix(as.integer(unlist(bits)), nrow = length(cells), byrow = TRUE)
}

words <- function(text) strsplit(text, " ", fixed = TRUE)[[1]]
clip <- function(x, low = 0, high = 1) pmin(pmax(x, low), high)
without_nan <- function(x) ifelse(is.nan(x), 0, x)

# Return z with P(|N(0, 1)| <= z) = level.
normal_quantile <- function(level) qnorm((1 + level) / 2)

# --- Intervals of shares whose reports name options: Feldman and Cousins 1998 --------------------

# Return the interval for the share of an option that `count` of n reports name.
#
# The share of reports that name it is lambda = q + (p-q) pi. The interval for lambda, between the
# smaller and the larger of p and q, consists of all values at which the count ranks among the most
# likely outcomes, by the likelihood ratio, that together have the probability `level`.
feldman_cousins <- function(count, n, p, q, level) {
  floor <- min(p, q)
  ceiling <- max(p, q)
  low <- lower_end(count, n, floor, ceiling, level)
  mirrored <- lower_end(n - count, n, 1 - ceiling, 1 - floor, level)
  high <- if (mirrored == 1 - ceiling) ceiling else 1 - mirrored
  # pi = (lambda - q)/(p - q)
  clip(sort((c(low, high) - q) / (p - q)))
}

# Return the smallest lambda in [a, b] at which the count is accepted.
lower_end <- function(count, n, a, b, level) {
  if (count <= n * a) return(a)
  # The log likelihood of a count at the most likely lambda in [a, b]
  best <- function(x) {
    share <- min(max(x / n, a), b)
    x * log(share) + (n - x) * log1p(-share)
  }
  # The lambda at which m ranks as high as the count: logit = (l(count) - l(m))/(count - m)
  overtaking <- function(m) plogis((best(count) - best(m)) / (count - m))
  # P(m <= X < count) of a binomial X
  between <- function(m, share) pbinom(count - 1, n, share) - pbinom(m - 1, n, share)

  # The smallest m with P(m < X < count) below the level, where m and the count rank equally
  first <- 0
  last <- count - 1
  while (first < last) {
    m <- (first + last) %/% 2
    if (between(m + 1, overtaking(m)) < level) last <- m else first <- m + 1
  }
  m <- first
  upper <- clip(overtaking(m), a, b)
  lower <- if (m > 0) clip(overtaking(m - 1), a, b) else a
  if (between(m, upper) < level) {
    # Between both ranks, P(m <= X < count) falls below the level.
    tolerance <- 1e-5 * sqrt(upper * (1 - lower) / n)
    while (upper - lower > tolerance) {
      middle <- (lower + upper) / 2
      if (between(m, middle) >= level) lower <- middle else upper <- middle
    }
    upper <- lower
  }
  clip(upper - 1e-6 * sqrt(upper * (1 - upper) / n), a, b)
}

# --- Score intervals of tables: Wilson 1927 ------------------------------------------------------

# Return C, by how many reports an end moves because counts are whole numbers.
continuity <- function(level) max(0.5, 1 - normal_quantile(level) * sqrt(-log(level)))

# Return by how much an end moves because counts are whole numbers (Esseen 1945).
#
# The estimate is a sum of one value per report; of the n[s] reports of group s (a row), a fraction
# shares[s, c] has the value values[s, c]. The shift is the largest C h |phi(2 pi/h)| over jumps h,
# where phi is the characteristic function of the sum:
# |phi(u)| = prod over s of |sum over c of shares[s, c] exp(i u values[s, c])|^n[s].
lattice_shift <- function(values, shares, n, level) {
  mode <- values[cbind(seq_len(nrow(values)), apply(shares, 1, which.max))]
  jumps <- sort(abs(values - mode))
  if (length(jumps) > 8) jumps <- jumps[round((0:7) * (length(jumps) - 1) / 7) + 1]
  largest <- 0
  for (h in jumps[jumps > 1e-9 * max(jumps)]) {
    u <- 2 * pi / h
    length <- sqrt(rowSums(cos(u * values) * shares)^2 + rowSums(sin(u * values) * shares)^2)
    largest <- max(largest, h * prod(pmin(length, 1)^n))
  }
  continuity(level) * largest
}

# Return all x with n (estimate - x)^2 <= z^2 (x at_truth + (1-x) elsewhere - x^2).
#
# at_truth = E[g^2 | the truth is the option] and elsewhere = the largest E[g^2 | another truth],
# where g is the pseudo-value of a report. Each end moves outwards by `shift`.
score_interval <- function(estimate, n, at_truth, elsewhere, level, shift) {
  z2 <- normal_quantile(level)^2
  slope <- at_truth - elsewhere
  side <- c(-1, 1)
  x <- clip(estimate + side * shift)
  b <- n * x + z2 * slope / 2
  variance <- pmax(elsewhere + slope * x - x^2, 0)
  root <- sqrt(z2 * (n * variance + z2 * (slope^2 / 4 + elsewhere)))
  clip((b + side * root) / (n + z2))
}

# --- Counts and shares ---------------------------------------------------------------------------

# Return the shares of all options of one question, among all respondents of a group.
#
# For each option: `count` of `reports` reports name it (binomial questions), `estimate`. For tables:
# G, the pseudo-values of each option (a row) for each report, and f, the shares of reports.
shares_of <- function(survey, scope, stratum, question) {
  s <- list(survey = survey, question = question, form = survey$questions[[question]])
  s$options <- survey$options[[question]]$option_id
  s$answers <- which(survey$options[[question]]$is_answer == "1")
  s$silent <- which(survey$options[[question]]$is_answer != "1")
  cells <- cells_of(survey, scope, stratum, question)
  s$n <- length(cells)
  chances <- survey$chances[survey$chances$question_id == question, ]
  s$is_binomial <- nrow(chances) > 0
  if (s$is_binomial) {
    chances <- chances[match(s$options, chances$option_id), ]
    s$p <- as.numeric(chances$p)
    s$q <- as.numeric(chances$q)
    count_names(s, cells)
  } else {
    average_values(s, scope, stratum, cells)
  }
}

count_names <- function(s, cells) {
  k <- length(s$options)
  s$reports <- rep(s$n, k)
  if (s$form$form == "sampled_bits") {
    bits <- bits_of(cells)
    s$reports <- colSums(bits[, 1:k, drop = FALSE])
    s$count <- colSums(bits[, k + 1:k, drop = FALSE])
  } else if (s$form$form %in% c("bits", "sets")) {
    s$count <- colSums(bits_of(cells))
  } else {
    ids <- lapply(s$survey$answers[[s$question]]$options, words)
    names <- sapply(ids, function(pattern) s$options %in% pattern) * 1
    s$count <- as.vector(names %*% tabulate(as.integer(cells) + 1, length(ids)))
  }
  # pi = (f - q)/(p - q)
  s$estimate <- (s$count / s$reports - s$q) / (s$p - s$q)
  s
}

average_values <- function(s, scope, stratum, cells) {
  rows <- lapply(s$options, function(option) {
    values_of(s$survey, scope, stratum, s$question, "share", "all", option)
  })
  report_of_code <- as.integer(rows[[1]]$report) + 1
  reports <- max(report_of_code)
  s$G <- matrix(0, length(rows), reports)
  for (place in seq_along(rows)) s$G[place, report_of_code] <- as.numeric(rows[[place]]$value)
  s$f <- tabulate(report_of_code[as.integer(cells) + 1], reports) / s$n
  s$reports <- rep(s$n, length(rows))
  # The estimate is the plain average of the pseudo-values.
  s$estimate <- as.vector(s$G %*% s$f)
  P <- matrix_of(s$survey, s$question)
  # P(report | truth), with codes merged into reports
  s$P <- matrix(0, nrow(P), reports)
  for (code in seq_along(report_of_code)) {
    s$P[, report_of_code[code]] <- s$P[, report_of_code[code]] + P[, code]
  }
  # The option that a truth names first; the options of numbers are their "no answers".
  first <- sapply(s$survey$answers[[s$question]]$options, function(x) words(x)[1])
  s$truth <- match(first, s$options, nomatch = 0)
  s
}

# Return the interval of one option's share.
share_interval <- function(s, place, level) {
  if (s$is_binomial) {
    if (s$reports[place] == 0) return(c(0, 1))
    return(feldman_cousins(s$count[place], s$reports[place], s$p[place], s$q[place], level))
  }
  g <- s$G[place, ]
  mean <- as.vector(s$P %*% g)
  square <- as.vector(s$P %*% g^2)
  is_option <- s$truth == place
  # Pseudo-values are unbiased: E[g | truth] is 1 for the option and 0 for all other truths.
  bias <- max(abs(mean - is_option))
  shift <- lattice_shift(rbind(g / s$n), rbind(s$f), s$n, level)
  if (bias > 1e-9) shift <- shift + bias
  score_interval(s$estimate[place], s$n, max(square[is_option]), max(square[!is_option]), level,
                 shift)
}

# --- Shares among those who answered: Fieller 1954 -----------------------------------------------

SHIFT_RATIOS <- (0:32) / 32
STEPS <- 128

# Return the share of one answer among the respondents who answered, R = pi_j/A, and its interval.
#
# A = 1 - the shares of options that are no answer. The interval is the hull of all r in [0, 1] with
# (pi_j - r A)^2 <= z^2 V(r), where V(r) is the variance of pi_j - r A if the ratio is r.
answered_share <- function(s, place, level) {
  if (s$reports[place] == 0) return(c(NaN, 0, 1))
  bottom <- 1 - sum(s$estimate[s$silent])
  shift <- answered_shift(s, place, level)
  variance <- variance_function(s, place)
  ends <- sapply(c(-1, 1), function(side) {
    answered_end(s$estimate[place], bottom, variance, shift, side, level)
  })
  c(s$estimate[place] / bottom, ends)
}

# Return the last accepted ratio on one side: on a grid, then by halving.
answered_end <- function(top, bottom, variance, shift, side, level) {
  z <- normal_quantile(level)
  answered <- min(bottom, 1)
  start <- clip(top, 0, bottom) / bottom
  accepted <- function(ratio, shift) {
    moved <- clip(top + side * shift, 0, bottom)
    beyond <- pmax(side * (ratio * bottom - moved), 0)
    beyond^2 <= z^2 * variance(ratio, answered)
  }
  grid <- (0:STEPS) / STEPS
  on_grid <- approx(SHIFT_RATIOS, shift, grid)$y
  inside <- side * max(side * ifelse(accepted(grid, on_grid), grid, start))
  point <- inside * STEPS
  point <- if (side < 0) ceiling(point - 1) else floor(point + 1)
  point <- clip(point, 0, STEPS)
  outside <- point / STEPS
  near <- clip(point - side, 0, STEPS)
  slope <- (on_grid[near + 1] - on_grid[point + 1]) * -side * STEPS
  accepted_between <- function(ratio) {
    accepted(ratio, on_grid[point + 1] + slope * (ratio - outside))
  }
  end <- if (accepted_between(outside)) outside else inside
  rejected <- outside
  for (i in 1:24) {
    middle <- (end + rejected) / 2
    if (accepted_between(middle)) end <- middle else rejected <- middle
  }
  rejected
}

# Return the lattice shift of pi_j - r A at each of SHIFT_RATIOS.
answered_shift <- function(s, place, level) {
  if (!s$is_binomial) {
    a <- s$G[place, ]
    b <- colSums(s$G[s$answers, , drop = FALSE])
    return(sapply(SHIFT_RATIOS, function(r) {
      lattice_shift(rbind((a - r * b) / s$n), rbind(s$f), s$n, level)
    }))
  }
  places <- c(place, s$silent)
  D <- abs(as.numeric(s$form$p) - as.numeric(s$form$q))
  n <- pmax(s$reports[places], 1)
  # The share of reports that name each option, from the estimate
  names <- s$q + (s$p - s$q) * without_nan(s$estimate)
  f <- clip(names[places])
  sapply(SHIFT_RATIOS, function(r) {
    step <- c(1, rep(r, length(s$silent))) / (D * n)
    if (s$form$form %in% c("answer", "pattern")) {
      # One report names a single one of these options, or none.
      lattice_shift(rbind(c(step, 0)), rbind(c(f, max(1 - sum(f), 0))), n[1], level)
    } else {
      lattice_shift(cbind(step, 0), cbind(f, 1 - f), n, level)
    }
  })
}

# Return V(r, A).
variance_function <- function(s, place) {
  if (!s$is_binomial) return(grouped_variance(s, table_squares(s, place)))
  if (s$form$form == "sampled_bits") return(sampled_variance(s, place))
  grouped_variance(s, names_squares(s, place))
}

# Return V = (A [r w_truth(r) + (1-r) w_elsewhere(r)] + (1-A) w_silent(r)) / n.
#
# w(r) = E[(a - r b)^2] = E[a^2] - 2 r E[a b] + r^2 E[b^2] of people with the option, with another
# answer, and without an answer.
grouped_variance <- function(s, moments) {
  w <- function(m, r) m[1] - 2 * r * m[2] + r^2 * m[3]
  function(r, answered) {
    answering <- r * w(moments[[1]], r) + (1 - r) * w(moments[[2]], r)
    (answered * answering + (1 - answered) * w(moments[[3]], r)) / s$n
  }
}

# Return E[a^2], E[a b], E[b^2] of the three groups; truths weighted as estimated.
table_squares <- function(s, place) {
  a <- s$G[place, ]
  b <- colSums(s$G[s$answers, , drop = FALSE])
  weights <- possible_shares(s$estimate)
  k <- length(weights)
  # One row of P per option: its truths have the same probabilities.
  P <- s$P[match(seq_len(k), s$truth), , drop = FALSE]
  moments <- P %*% cbind(a^2, a * b, b^2)
  is_silent <- seq_len(k) %in% s$silent
  is_option <- seq_len(k) == place
  lapply(list(is_option, !is_option & !is_silent, is_silent), function(among) {
    apply(moments, 2, weighted_mean, weights, among)
  })
}

# Return the moments of a = (s_j - q_j)/D and b = 1 - (N - S q)/D.
#
# s_j says whether the report names option j, N how many of the S options that are no answer.
# with_one: P(a report names two given options | one of them is the truth); with_none: the same if
# neither is. Patterns contain no second option beside one that is no answer.
names_squares <- function(s, place) {
  form <- s$form
  p <- as.numeric(form$p)
  q <- as.numeric(form$q)
  with_one <- with_none <- 0
  if (form$form == "bits") {
    with_one <- p - as.numeric(form$pair_kept)
    with_none <- as.numeric(form$pair_flipped)
  } else if (form$form %in% c("answer", "sets")) {
    k <- as.numeric(form$k)
    d <- as.numeric(form$d)
    with_one <- p * (d - 1) / (k - 1)
    with_none <- (p * (d - 1) * (d - 2) + (1 - p) * d * (d - 1)) / ((k - 1) * max(k - 2, 1))
  }
  S <- length(s$silent)
  D <- p - q
  base <- S * q
  chosen <- s$p[place]
  other <- s$q[place]
  answered_N <- S * q
  silent_N <- p + (S - 1) * q
  answered_NN <- answered_N + S * (S - 1) * with_none
  silent_NN <- silent_N + 2 * (S - 1) * with_one + (S - 1) * (S - 2) * with_none
  squares <- function(x, joint, N, NN) {
    together <- (joint - base * x - other * N + other * base) / D^2
    c((x * (1 - 2 * other) + other^2) / D^2, (x - other) / D - together,
      1 - 2 * (N - base) / D + (NN - 2 * base * N + base^2) / D^2)
  }
  list(squares(chosen, S * with_one, answered_N, answered_NN),
       squares(other, S * with_none, answered_N, answered_NN),
       squares(other, with_one + (S - 1) * with_none, silent_N, silent_NN))
}

# Return V for a question of which each report covers only some options:
# Var(pi_j) + r^2 Var(sum pi_s) - 2 r sum pi_j pi_s common/(n_j n_s).
sampled_variance <- function(s, place) {
  p <- as.numeric(s$form$p)
  q <- as.numeric(s$form$q)
  m <- length(s$options)
  r <- as.numeric(s$form$sampled)
  common <- s$n * r * (r - 1) / (m * (m - 1))
  parts <- possible_shares(s$estimate[s$silent])
  reports <- pmax(s$reports, 1)
  share_variance <- function(x, n) {
    noise <- x * p * (1 - p) / (p - q)^2 + (1 - x) * q * (1 - q) / (p - q)^2
    (noise + x * (1 - x)) / n
  }
  function(ratio, answered) {
    x <- ratio * answered
    n <- reports[place]
    across <- silent <- 0
    for (i in seq_along(parts)) {
      y <- (1 - answered) * parts[i]
      n_part <- reports[s$silent[i]]
      across <- across + x * y / (n * n_part)
      silent <- silent + share_variance(y, n_part)
      for (j in seq_along(parts)[seq_along(parts) > i]) {
        product <- y * (1 - answered) * parts[j]
        silent <- silent - 2 * product * common / (n_part * reports[s$silent[j]])
      }
    }
    share_variance(x, n) + ratio^2 * silent - 2 * ratio * common * across
  }
}

# Return max(estimate + d, 0) with the d that makes the sum 1 (norm-sub).
possible_shares <- function(estimate) {
  x <- without_nan(estimate)
  largest_first <- sort(x, decreasing = TRUE)
  delta <- (cumsum(largest_first) - 1) / seq_along(x)
  shares <- pmax(x - delta[max(sum(largest_first > delta), 1)], 0)
  shares / sum(shares)
}

# Return the weighted mean over a group; unweighted if all weights are 0.
weighted_mean <- function(values, weights, among) {
  inside <- ifelse(among, weights, 0)
  if (!sum(inside) > 0) inside <- among * 1
  sum(values * inside) / sum(inside)
}

# --- Means, mean ranks and histogram cells: Student 1908, Fieller 1954, Johnson 1978 -------------

# Ratios at which variances are computed; they are linear between these.
RATIOS <- -cos(pi * (0:64) / 64)
at_ratio <- function(r, table) approx(RATIOS, table, clip(r, -1, 1))$y

# Return the mean of a over the mean of b and its interval, on a scale on which the target x is from
# -1 to 1 (NA where a truth is no answer).
#
# a and b are pseudo-values of the reports: E[a | truth] = x, or 0 if it is no answer, and
# E[b | truth] = 1 or 0. The interval is the hull of all r with
# |A - r B| <= bias + t(r) sqrt(max(Var(a - r b), floor(r))/n).
ratio_interval <- function(P, f, n, a, b, x, level, parts) {
  answers <- !is.na(x)
  target <- ifelse(answers, x, 0)
  biases <- c(max(abs(P %*% a - target)), max(abs(P %*% b - answers)))
  bias <- sum(biases[biases > 1e-9])
  A <- sum(f * a)
  B <- sum(f * b)
  if (B <= 0) return(c(NaN, -1, 1))
  # Moments of the reports around the means
  u <- a - A
  v <- b - B
  bessel <- n / max(n - 1, 1)
  second <- bessel * c(sum(f * u^2), sum(f * u * v), sum(f * v^2))
  thirds <- c(sum(f * u^3), sum(f * u^2 * v), sum(f * u * v^2), sum(f * v^3))
  differences <- outer(RATIOS, seq_along(a), function(r, i) a[i] - r * b[i])
  minimum <- apply(differences, 1, min)
  maximum <- apply(differences, 1, max)
  floor <- smallest_variance(P, a, b, B, target, answers)
  t <- qt((1 + level) / 2, max(n - 1, 1))
  inside <- clip(A / B, -1, 1)

  # The variance of a - r b and the quantile, with one more extreme report: a small sample may
  # contain none of the rare reports that cause variance and skewness. The quantile is
  # t + skewness (2 t^2 + 1)/(6 sqrt n) on the side of the skewness.
  rejected <- function(r, side) {
    variance <- max(second[1] - 2 * r * second[2] + r^2 * second[3], 0)
    extreme <- at_ratio(r, if (side > 0) maximum else minimum)
    g <- max(side * (extreme - (A - r * B)), 0)
    d <- g / (n + 1)
    third <- side * (thirds[1] - 3 * r * thirds[2] + 3 * r^2 * thirds[3] - r^3 * thirds[4])
    third <- n * (third - 3 * d * variance - d^3) + (g - d)^3
    larger <- variance + g * d
    skewness <- max(third / (n + 1) / (if (larger > 0) larger else 1)^1.5, 0)
    quantile <- t + skewness * (2 * t^2 + 1) / (6 * sqrt(n))
    spread <- sqrt(max(larger, at_ratio(r, floor)) / n)
    n > 1 && B * abs(inside - r) > bias + quantile * spread
  }
  c(A / B, last_accepted(inside, -1, rejected, parts), last_accepted(inside, 1, rejected, parts))
}

# Return the smallest Var(a - r b) that randomization causes, at each of RATIOS.
#
# It is the sum of pi_i w_i(r), w_i(r) = E[(a - r b)^2 | i]. Among people who answered, with the mean
# r, it is at least the lower convex hull of the points (x_i, w_i(r)) at r.
smallest_variance <- function(P, a, b, B, target, answers) {
  aa <- as.vector(P %*% a^2)
  ab <- as.vector(P %*% (a * b))
  bb <- as.vector(P %*% b^2)
  share <- if (all(answers)) 1 else clip(B)
  x <- sort(unique(target[answers]))
  sapply(RATIOS, function(r) {
    w <- aa - 2 * r * ab + r^2 * bb
    lowest <- sapply(x, function(value) min(w[answers & target == value]))
    silent <- if (all(answers)) 0 else min(w[!answers])
    max(share * hull(x, lowest, r) + (1 - share) * silent, 0)
  })
}

# Return the height at `at` of the lower convex hull of the points (x, y), x rising.
hull <- function(x, y, at) {
  kept <- integer(0)
  for (i in seq_along(x)) {
    while (length(kept) > 1) {
      last <- kept[length(kept)]
      before <- kept[length(kept) - 1]
      # The middle point stays if it is below the line between its neighbours.
      if ((y[last] - y[before]) * (x[i] - x[before]) <
            (y[i] - y[before]) * (x[last] - x[before])) break
      kept <- kept[-length(kept)]
    }
    kept <- c(kept, i)
  }
  approx(x[kept], y[kept], clip(at, min(x), max(x)))$y
}

# Return where values begin to be rejected, cutting a bracket into parts.
last_accepted <- function(inside, side, rejected, parts) {
  accepted <- inside
  beyond <- side
  if (!rejected(beyond, side)) return(side)
  for (round in seq_len(ceiling(24 * log(2) / log(parts)))) {
    length <- (beyond - accepted) / parts
    before <- parts - 1
    for (step in seq_len(parts - 1)) {
      if (rejected(accepted + step / parts * (beyond - accepted), side)) {
        before <- step - 1
        break
      }
    }
    beyond <- accepted + (before + 1) * length
    accepted <- accepted + before * length
  }
  beyond
}

# Return the estimate and interval of a mean, a mean rank or a histogram cell.
number_result <- function(survey, row, n_cells) {
  rows <- values_of(survey, row$scope, row$stratum, row$question_id, row$statistic, row$base,
                    row$option_id)
  target <- target_values(survey, row)
  if (target$is_all) return(c(1, 1, 1))
  value <- as.numeric(rows$value)
  b <- as.numeric(rows$answered)
  middle <- (target$low + target$high) / 2
  half <- (target$high - target$low) / 2
  # value = middle b + half a
  a <- (value - middle * b) / half
  codes <- as.integer(cells_of(survey, row$scope, row$stratum, row$question_id))
  n <- length(codes)
  f <- tabulate(codes + 1, length(value)) / n
  parts <- if (row$statistic != "share" || n_cells <= 8) 32 else 2
  P <- matrix_of(survey, row$question_id)
  ends <- ratio_interval(P, f, n, a, b, (target$x - middle) / half, as.numeric(row$conf_level),
                         parts)
  # The estimate is mean(value)/mean(answered); interval ends stay inside the possible range.
  c(sum(f * value) / sum(f * b), max(middle + half * ends[2], target$low),
    min(middle + half * ends[3], target$high))
}

# --- Displayed distributions and medians ----------------------------------------------------------

# Return the displayed shares of a question's numbers, and what the intervals of sets need.
#
# `pi` has the displayed shares of all true answers among all respondents of the group, `shares` those
# of the different `numbers` among the people who answered.
distribution_of <- function(survey, scope, stratum, question) {
  d <- new.env()
  rows <- survey$displayed[[paste(scope, stratum, question, sep = "\t")]]
  d$x <- suppressWarnings(as.numeric(survey$answers[[question]]$value))
  d$P <- matrix_of(survey, question)
  codes <- as.integer(cells_of(survey, scope, stratum, question))
  d$n <- length(codes)
  d$f <- tabulate(codes + 1, ncol(d$P)) / d$n
  base <- survey$means$base[survey$means$question_id == question]
  d$b <- as.numeric(values_of(survey, scope, stratum, question, "mean", base, "")$answered)
  d$pi <- as.numeric(rows$share)
  d$form <- survey$questions[[question]]
  d$is_right <- if (rows$method[1] == "em") is_best(d) else is_smoothed(d)
  d$numbers <- sort(unique(d$x))
  shares <- sapply(d$numbers, function(number) sum(d$pi[d$x %in% number]))
  d$shares <- shares / sum(shares)
  if (d$form$form != "answer") {
    # P R^-1/2 = U diag(s) V^T, R the mean of the rows of P
    d$root <- sqrt(colMeans(d$P))
    d$svd <- svd(d$P / rep(d$root, each = nrow(d$P)))
  }
  d$ends <- new.env()
  d
}

# Return whether the shares maximize the likelihood sum f_j log lambda_j, lambda = pi P.
#
# By duality, the log likelihood per report is within max_i sum_j f_j P_ij/lambda_j - 1 of its
# maximum.
is_best <- function(d) max(d$P %*% (d$f / as.vector(d$pi %*% d$P))) - 1 <= 1e-5

# Return whether the shares are those of expectation maximization with smoothing.
#
# Each round is pi_i <- pi_i sum_j f_j P_ij/lambda_j, followed by smoothing with the weights 1/4, 1/2,
# 1/4 along the numbers, until the log likelihood changes by less than .001 (Li et al. 2020).
is_smoothed <- function(d) {
  along <- order(d$x, na.last = NA)
  f <- d$f[d$f > 0]
  P <- d$P[, d$f > 0, drop = FALSE]
  pi <- rep(1 / nrow(P), nrow(P))
  previous <- -Inf
  for (round in seq_len(10000)) {
    lambdas <- as.vector(pi %*% P)
    likelihood <- d$n * sum(f * log(lambdas))
    if (abs(likelihood - previous) < 1e-3) break
    previous <- likelihood
    pi <- pi * as.vector(P %*% (f / lambdas))
    k <- length(along)
    padded <- pi[c(along[1], along, along[k])]
    pi[along] <- (padded[1:k] + 2 * padded[1:k + 1] + padded[1:k + 2]) / 4
    pi <- pi / sum(pi)
  }
  max(abs(pi - d$pi)) < 1e-6
}

# Return the interval for the share of numbers from first to last, among the people who answered.
set_interval <- function(d, first, last, level) {
  name <- paste(first, last, level)
  if (is.null(d$ends[[name]])) {
    target <- ifelse(d$x >= first & d$x <= last, 1, -1)
    a <- set_values(d, ifelse(is.na(target), 0, target))
    ratio <- ratio_interval(d$P, d$f, d$n, a, d$b, target, level, 32)
    d$ends[[name]] <- (1 + ratio[2:3]) / 2
  }
  d$ends[[name]]
}

# Return pseudo-values of a target in [-1, 1].
#
# For generalized randomized response: (x - q sum x)/(p - q). Otherwise R^-1/2 V diag(s/(s^2 + ridge
# s_0^2)) U^T x. The ridge is 0, the exact solution of least variance, unless another one with a bias
# of at most .05 makes the interval, 2 sqrt(E a^2/n) + bias, narrower by more than a tenth.
set_values <- function(d, target) {
  if (d$form$form == "answer") {
    p <- as.numeric(d$form$p)
    q <- as.numeric(d$form$q)
    return((target - q * sum(target)) / (p - q))
  }
  U <- d$svd$u
  s <- d$svd$d
  is_nonzero <- s > s[1] * .Machine$double.eps * max(dim(d$P))
  inverse <- ifelse(is_nonzero, 1 / s, 0)
  projected <- as.vector(crossprod(U, target))
  shrunk_by <- function(ridge) ifelse(is_nonzero, s^2 / (s^2 + ridge * s[1]^2), 0)
  ridges <- c(0, 10^((-28:0) / 2))
  bias <- sapply(ridges, function(r) max(abs(U %*% (shrunk_by(r) * projected) - target)))
  spread <- sapply(ridges, function(r) sqrt(sum((shrunk_by(r) * inverse * projected)^2) / d$n))
  half <- 2 * spread + bias
  allowed <- ifelse(bias <= max(bias[1], 0.05), half, Inf)
  best <- if (half[1] <= 1.1 * min(allowed)) 0 else ridges[which.min(allowed)]
  as.vector(d$svd$v %*% (shrunk_by(best) * projected * inverse)) / d$root
}

# Return the median of the displayed distribution and its interval.
#
# The interval has every x for which the interval of F(x) reaches 1/2 and that of F(x-), at the next
# smaller number, begins below 1/2. Where the share of an end is above 0, its one-sided error counts:
# intervals of the level 2 level - 1. Places count from 0.
median_result <- function(d, level) {
  x <- d$numbers
  last <- length(x) - 1
  up_to <- function(place, level) set_interval(d, x[1], x[place + 1], level)
  of_number <- function(place) set_interval(d, x[place + 1], x[place + 1], level)
  middle <- which(cumsum(d$shares) >= 0.5 - 1e-9)[1] - 1
  size <- min(16, last)
  steps <- if (size > 1) (last - 1) * (0:(size - 1)) / (size - 1) else 0
  coarse <- unique(round(steps))
  low <- first_place(coarse, last, function(place) up_to(place, level)[2] >= 0.5)
  high <- last - first_place(last - 1 - rev(coarse), last, function(place) {
    up_to(last - 1 - place, level)[1] < 0.5
  })
  one_sided <- 2 * level - 1
  while (low < high && of_number(low)[1] > 0 && up_to(low, one_sided)[2] < 0.5) low <- low + 1
  while (low < high && of_number(high)[1] > 0 && up_to(high - 1, one_sided)[1] >= 0.5) {
    high <- high - 1
  }
  x[c(middle, min(low, middle), max(high, middle)) + 1]
}

# Return the first accepted place below `last`, or `last`: coarsely, then by halving.
first_place <- function(coarse, last, accepted) {
  rejected <- -1
  for (place in coarse) {
    if (accepted(place)) {
      while (place - rejected > 1) {
        halfway <- (place + rejected) %/% 2
        if (accepted(halfway)) place <- halfway else rejected <- halfway
      }
      return(place)
    }
    rejected <- place
  }
  last
}

# Return the number of each truth (NA: no answer), both ends, and whether all are the same.
target_values <- function(survey, row) {
  truths <- survey$answers[[row$question_id]]
  if (row$statistic == "mean_rank") {
    orders <- lapply(truths$options, words)
    m <- max(lengths(orders))
    ranks <- sapply(orders, function(order) {
      if (length(order) == m) match(row$option_id, order) else NA
    })
    return(list(x = ranks, low = 1, high = m, is_all = FALSE))
  }
  numbers <- suppressWarnings(as.numeric(truths$value))
  if (row$statistic == "mean") {
    return(list(x = numbers, low = min(numbers, na.rm = TRUE), high = max(numbers, na.rm = TRUE),
                is_all = FALSE))
  }
  inside <- (numbers > as.numeric(row$cell_first) - 1e-9 &
               numbers < as.numeric(row$cell_last) + 1e-9) * 1
  list(x = inside, low = 0, high = 1, is_all = all(inside == 1, na.rm = TRUE))
}

# --- Comparison ----------------------------------------------------------------------------------

# Return the estimate and the interval of one published figure.
recompute <- function(survey, row, n_cells) {
  level <- as.numeric(row$conf_level)
  if (row$statistic == "median" || row$cell_first != "") {
    name <- paste("distribution", row$scope, row$stratum, row$question_id, sep = "\t")
    if (is.null(survey$cache[[name]])) {
      survey$cache[[name]] <- distribution_of(survey, row$scope, row$stratum, row$question_id)
    }
    d <- survey$cache[[name]]
    if (!d$is_right) return(c(NaN, NaN, NaN))
    if (row$statistic == "median") return(median_result(d, level))
    result <- number_result(survey, row, n_cells)
    inside <- d$numbers > as.numeric(row$cell_first) - 1e-9 &
      d$numbers < as.numeric(row$cell_last) + 1e-9
    shown <- sum(d$shares[inside])
    if (!(abs(shown - as.numeric(row$displayed)) <= 0.501e-6)) return(c(NaN, NaN, NaN))
    # The published interval of a cell is widened to contain the displayed share.
    return(c(result[1], min(result[2], shown), max(result[3], shown)))
  }
  if (row$statistic != "share") return(number_result(survey, row, 0))
  name <- paste("shares", row$scope, row$stratum, row$question_id, sep = "\t")
  if (is.null(survey$cache[[name]])) {
    survey$cache[[name]] <- shares_of(survey, row$scope, row$stratum, row$question_id)
  }
  s <- survey$cache[[name]]
  place <- match(row$option_id, s$options)
  if (row$base == "all") return(c(s$estimate[place], share_interval(s, place, level)))
  answered_share(s, place, level)
}

# Return the names of the files whose SHA-256 is not that of the manifest. Base R computes it from
# version 4.5 on; replicate.py always checks it.
changed_files <- function(folder) {
  if (!exists("sha256sum", asNamespace("tools"))) return(character(0))
  pattern <- '^ *"([^"]+)": "([0-9a-f]{64})",?$'
  lines <- readLines(file.path(folder, "manifest.json"), encoding = "UTF-8")
  lines <- grep(pattern, lines, value = TRUE)
  names <- sub(pattern, "\\1", lines)
  is_file <- names != "definition_sha256"
  digests <- get("sha256sum", asNamespace("tools"))(file.path(folder, names[is_file]))
  same <- digests == sub(pattern, "\\2", lines)[is_file]
  names[is_file][!(same %in% TRUE)]
}

# Compare every published figure with the recomputed one; return the exit status.
main <- function(folder) {
  survey <- read_survey(folder)
  changed <- changed_files(folder)
  for (name in changed) message(name, " is not the file that the manifest describes")
  published <- survey$published
  group <- paste(published$scope, published$stratum, published$question_id, sep = "\t")
  n_cells <- ave(published$cell_first != "", group, FUN = sum)
  compared <- different <- 0
  other <- character(0)
  for (i in seq_len(nrow(published))) {
    row <- published[i, ]
    parts <- c(row$stratum, row$question_id, row$option_id, row$statistic)
    name <- paste0(paste(parts[parts != ""], collapse = " "), " (", row$base, ")")
    if (row$recomputed != "yes") {
      other <- c(other, paste0(name, ": ", row$recomputed))
      next
    }
    digits <- as.integer(row$decimals)
    printed <- c(row$estimate, row$conf_low, row$conf_high)
    result <- recompute(survey, row, n_cells[i])
    # Equal digits: the distance from the printed number is at most half its last digit.
    is_same <- printed == "" |
      abs(result - suppressWarnings(as.numeric(printed))) <= 0.501 * 10^-digits
    is_equal <- !anyNA(is_same) && all(is_same)
    compared <- compared + 1
    different <- different + !is_equal
    numbers <- paste(sprintf("%14s %14.*f", ifelse(printed == "", "-", printed), digits, result),
                     collapse = " ")
    cat(sprintf("%-9s %s  %s\n", if (is_equal) "same" else "DIFFERENT", numbers, name))
  }
  for (text in other) cat("not recomputed: ", text, "\n", sep = "")
  cat(compared, " figures recomputed, ", different, " different, ", length(other),
      " not recomputed\n", sep = "")
  if (different > 0 || length(changed) > 0 || compared == 0) 1 else 0
}

arguments <- commandArgs(trailingOnly = TRUE)
# Rscript writes blanks in the path as "~+~".
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
script <- gsub("~+~", " ", script, fixed = TRUE)
folder <- if (length(arguments)) arguments[1] else if (length(script)) dirname(script[1]) else "."
quit(status = main(folder))
