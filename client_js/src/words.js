/**
 * Every word the interface says, in English, in one place; survey texts come from the definition.
 *
 * It promises protection, never that people will be more truthful, and calls things by one name:
 * a random answer, a report.
 */

/** @param {number} count @param {string} one @param {string} many */
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/**
 * Whom the frequencies are about. Where questions are drawn, only some people are asked each.
 *
 * @param {boolean} drawn
 */
const of100 = (drawn) =>
  drawn
    ? {
        people: "Of 100 people who are asked this question and",
        others: "Of 100 who are asked it and",
        anyOther: "Of 100 who are asked it and have any one other answer",
      }
    : {
        people: "Of 100 people",
        others: "Of 100",
        anyOther: "Of 100 people with any one other answer",
      };

/** A share of 100 that rounds to nothing is still possible. @param {string} tenths */
const about = (tenths) => (tenths === "0" ? "fewer than 0.1" : `about ${tenths}`);

/** What a suspicion becomes; the bound rounds up, so 100 would say too much. @param {number} percent */
const becomes = (percent) =>
  percent > 99 ? "can become more than 99%" : `becomes at most ${percent}%`;

export const words = {
  language: "en",

  start: {
    extent: (
      /** @type {number} */ asked,
      /** @type {number} */ pages,
      /** @type {boolean} */ skips,
    ) =>
      `${skips ? "Up to " : ""}${plural(asked, "question", "questions")} on ` +
      `${plural(pages, "page", "pages")}. ` +
      "No account, no cookie.",
    sampled: (
      /** @type {{fewest: number, most: number, all: number}} */ { fewest, most, all },
      /** @type {boolean} */ skips,
    ) => {
      const many = fewest === most ? `${most}` : `${fewest} to ${most}`;
      return (
        `Each person is asked ${skips ? `up to ${most}` : many} of ` +
        `${plural(all, "question", "questions")}, chosen at random. ` +
        "No account, no cookie."
      );
    },
    skips:
      "Some questions are asked only after certain answers. Your report always has the same form, " +
      "but how long you take may tell which questions were skipped.",
    heading: "Answer truthfully. Your real answer stays on this device.",
    steps:
      "Before anything is sent, this page sometimes replaces it by a random one. Nobody who has " +
      "only your report, not us, not a thief, not a court, can know for certain what your real " +
      "answer was.",
    stepsByChance:
      "Before anything is sent, this page decides by chance what the report says. Your answer only " +
      "makes some reports likelier than others. Nobody who has only your report, not us, not a " +
      "thief, not a court, can know for certain what your real answer was.",
    drawing:
      "Drawing of the random step: on this device, your answer either goes into the report as it " +
      "is, or is replaced by a random answer. Only the report leaves the device.",
    drawingByChance:
      "Drawing of the random step: on this device, chance decides what the report says, and your " +
      "answer only makes some reports likelier. Only the report leaves the device.",
    drawingTruth: "Your answer",
    drawingStep: "Random step",
    drawingReport: "Report",
    drawingDevice: "on this device",
    drawingSent: "is sent",
    example: "For example",
    least: "The least protected question",
    inNumbers: "How your answers are protected, in numbers",
    sendOnce:
      "Your answers are sent once, at the end, as one report. After that it cannot be changed or " +
      "taken back: stored reports carry no name, so nobody can find yours.",
    bucket: {
      day:
        "Reports become readable in groups. With each group the day is kept on which that happens: " +
        "the day on which you send your report, or a later one.",
      week:
        "Reports become readable in groups. With each group the week is kept in which that happens: " +
        "the week in which you send your report, or a later one.",
    },
    forgotten:
      "Until you press “Send my report”, your answers are kept nowhere. If you leave or reload " +
      "this page before that, they are forgotten.",
    keepsNothing:
      "This browser lets the page keep nothing: keep this page open until your report is sent, " +
      "and answer only once.",
    contact: "Who asks, and whom to ask",
    button: "Start",
  },

  label: {
    frequencyOfTwo: (
      /** @type {string} */ own,
      /** @type {string} */ other,
      /** @type {{own: string, other: string}} */ of,
      /** @type {boolean} */ drawn,
    ) =>
      `${of100(drawn).people} whose answer is “${own}”, ${about(of.own)} reports say “${own}”. ` +
      `${of100(drawn).others} whose answer is “${other}”, ${about(of.other)} reports say “${own}” too. ` +
      `So a “${own}” report never proves anything.`,
    frequencyOfMany: (
      /** @type {string} */ own,
      /** @type {{own: string, other: string}} */ of,
      /** @type {boolean} */ drawn,
    ) =>
      `${of100(drawn).people} whose answer is “${own}”, ${about(of.own)} reports say “${own}”. ` +
      `${of100(drawn).anyOther}, ${about(of.other)} reports say “${own}” too. ` +
      `So a “${own}” report never proves anything.`,
    frequencyOfRarest: (
      /** @type {string} */ own,
      /** @type {{own: string, other: string}} */ of,
      /** @type {boolean} */ drawn,
    ) =>
      `${of100(drawn).people} whose answer is “${own}”, ${about(of.own)} reports say “${own}”. ` +
      `Of 100 with the other answer for which that is rarest, ${about(of.other)} reports say ` +
      `“${own}” too. So a “${own}” report never proves anything.`,
    frequencyOfTick: (
      /** @type {string} */ own,
      /** @type {{own: string, other: string}} */ of,
      /** @type {boolean} */ drawn,
    ) =>
      `${of100(drawn).people} ${drawn ? "" : "who "}select “${own}”, ${about(of.own)} reports ` +
      `say that they did. ${of100(drawn).others} ${drawn ? "" : "who "}do not, ${about(of.other)} reports say so too. ` +
      "So a report never proves anything.",
    frequencyOfSampledTick: (
      /** @type {string} */ own,
      /** @type {{own: string, other: string}} */ of,
      /** @type {boolean} */ drawn,
      /** @type {{sampled: number, m: number}} */ { sampled, m },
    ) =>
      `${drawn ? "Where this question is asked, a" : "A"} report speaks of only ${sampled} of ` +
      `the ${m} options, chosen at random. Where it speaks of “${own}”: of 100 people who select ` +
      `it, ${about(of.own)} reports say that they did; of 100 who do not, ` +
      `${about(of.other)} reports say so too. ` +
      "So a report never proves anything.",
    everyReport:
      "Every report can come from every answer, from some more often than from others. " +
      "So a report never proves anything.",
    noShare: "–",
    severalNamed: (/** @type {number} */ count) =>
      `A report names ${count} of the options here, never just one.`,
    bounds: (
      /** @type {string} */ factor,
      /** @type {{from10: number, from50: number}} */ bounds,
    ) =>
      `One report can multiply anyone’s odds about your answer by at most ${factor}: ` +
      `a suspicion of 10% ${becomes(bounds.from10)}, and one of 50% ${becomes(bounds.from50)}.`,
    linkedBounds: (
      /** @type {string} */ factor,
      /** @type {{from10: number, from50: number}} */ bounds,
    ) =>
      "Some questions are asked only after certain answers, so what is reported on them also tells " +
      "something about those answers. Together with all questions linked to this one in that way, " +
      `one report can multiply anyone’s odds about your answer by at most ${factor}: ` +
      `a suspicion of 10% ${becomes(bounds.from10)}, and one of 50% ${becomes(bounds.from50)}.`,
    caption: "What a report can say about you, question by question",
    ofAsked: "The counts are of people who are asked the question.",
    ofSampled:
      "Where a report speaks of only some of a question’s options, chosen at random, the counts " +
      "are of reports that speak of the option.",
    ofLinked:
      "Where questions are asked only after certain answers, the odds of a question count the " +
      "reports on all questions linked to it in that way.",
    columns: [
      "Question",
      "Of 100 with an answer, reports saying so",
      "Of 100 with another answer, reports saying so too",
      "Odds multiplied by at most",
      "Suspicion of 10% becomes at most",
      "Suspicion of 50% becomes at most",
    ],
    share: (/** @type {string} */ tenths) => (tenths === "0" ? "under 0.1" : tenths),
    percent: (/** @type {number} */ whole) => (whole > 99 ? "more than 99%" : `${whole}%`),
    together: (/** @type {string} */ factor) =>
      `All questions together: your report can multiply anyone’s odds about one full set of ` +
      `answers by at most ${factor}.`,
    little: "Taken together, these answers are protected little.",
    littleMeans:
      "Each answer alone is protected as shown, but whoever combines all of them could learn much.",
    openHeading: "What is not protected",
    open: [
      "That you took part.",
      "Your network address, at the moment the report is sent.",
      "Against this website itself, if it served changed page code. To check: the code below and " +
        "the survey’s text are known by the fingerprints printed here. Compare them with the " +
        "ones published for this survey.",
    ],
    definition: "Fingerprint of the survey’s text",
    code: "Fingerprint of the page code",
  },

  question: {
    back: "Back",
    next: "Continue",
    toReview: "Continue to review",
    page: (/** @type {number} */ at, /** @type {number} */ of) => `Page ${at} of ${of}`,
    numbers: (/** @type {number} */ first, /** @type {number} */ last) =>
      first === last ? `Question ${first}` : `Questions ${first} to ${last}`,
    protection: "How this answer is protected",
    errorHeading: "There is a problem",
    nudgeHeading: "Not everything is answered",
    missing: (/** @type {string} */ question) => `Choose an answer: “${question}”`,
    missingHere: "Choose an answer.",
    missingEntry: (/** @type {string} */ question) => `Give an answer: “${question}”`,
    missingEntryHere: "Give an answer.",
    wrong: (/** @type {string} */ question, /** @type {string} */ problem) =>
      `“${question}”: ${problem}`,
    nudge: (/** @type {string} */ question, /** @type {string} */ optOut) =>
      `“${question}”: not answered. Continue without an answer and it will count as “${optOut}”.`,
    nudgeHere: (/** @type {string} */ optOut) =>
      `Not answered. Continue without an answer and it will count as “${optOut}”.`,
  },

  field: {
    allThatApply: "Select all that apply.",
    upTo: (/** @type {number} */ most) => `Select up to ${most}.`,
    tooMany: (/** @type {number} */ most) => `Select at most ${most}.`,
    or: "or",
    number: (
      /** @type {string} */ low,
      /** @type {string} */ high,
      /** @type {string} */ unit,
      /** @type {boolean} */ whole,
    ) => `A ${whole ? "whole " : ""}number from ${low} to ${`${high} ${unit}`.trim()}.`,
    rounded: (/** @type {string} */ step) => `It is rounded on this device, in steps of ${step}.`,
    thousands: "Write thousands without a comma or point.",
    numberWrong: (/** @type {string} */ low, /** @type {string} */ high) =>
      `Enter a number from ${low} to ${high}.`,
    date: (/** @type {string} */ first, /** @type {string} */ last) =>
      `A date from ${first} to ${last}.`,
    roundedDays: (/** @type {number} */ step) =>
      `It is rounded on this device, in steps of ${plural(step, "day", "days")}.`,
    dateWrong: (/** @type {string} */ first, /** @type {string} */ last) =>
      `Enter a date from ${first} to ${last}.`,
  },

  review: {
    heading: "Check your answers",
    intro:
      "These answers are still only on this device. When you press the button, the random step is " +
      "taken once for each of them, the report is sent, and this page forgets the answers.",
    change: "Change",
    changeOf: (/** @type {string} */ question) => `Change: ${question}`,
    notAnswered: "not answered",
    rounded: "rounded to",
    once: "You can send one report. It cannot be changed afterwards.",
    send: "Send my report",
  },

  sending: {
    heading: "Sending your report",
    text: "The random step is done and your answers are forgotten. Only the report is left.",
  },

  waiting: {
    heading: "Your report is waiting to be sent",
    network: "There is no connection to the survey right now.",
    busy: "The survey cannot take the report right now.",
    safe:
      "The report is safe on this device. You can leave this page open: it tries again by itself. " +
      "Or close it and open the same link later, on this device and in this browser.",
    keepOpen:
      "This browser does not let the page keep anything. Leave this page open until the report is " +
      "sent: if you close it, the report is lost.",
    same: "However often it is tried, the same report is sent, and it counts once.",
    next: (/** @type {number} */ seconds) =>
      seconds < 120
        ? `Next try in ${plural(seconds, "second", "seconds")}.`
        : `Next try in ${Math.ceil(seconds / 60)} minutes.`,
    trying: "Trying now.",
    now: "Try now",
  },

  sent: {
    heading: "Your report was sent",
    thanks: "Thank you for taking part.",
    what: "What was sent",
    whatMeans:
      "This is the report, not your answers. Each line may be a random answer, so none of them " +
      "proves what your answer was.",
    whatMeansByChance:
      "This is the report, not your answers. Chance decided what each line says, and your answers " +
      "only made some of it likelier: none of the lines proves what your answer was.",
    reported: "Reported",
    mayBeRandom: "This may be a random answer.",
    fromAnyAnswer: "Every answer can lead to this.",
    askedAbout: "Speaks of these options, chosen at random",
    noneNamed: "none of the options",
    notAsked: "Not asked",
    place: (/** @type {number} */ at, /** @type {number} */ of) =>
      of === 2
        ? `${at} (one bit, which is no answer)`
        : `number ${at + 1} of ${of} possible reports, which are no answers`,
    unreadable: "This part of the report cannot be read.",
    warning:
      "Someone could ask you to show this. You do not have to: once you leave or reload this page " +
      "it is gone, and this device keeps no copy of it.",
    bytes: "The exact message",
    unknown: "The survey’s text has changed since this report was made; here is the exact message.",
  },

  mark: {
    heading: "A report was already sent from this device",
    text:
      "This device keeps a mark that a report was sent for this survey. It holds no answers and " +
      "no report. A second report would weaken the protection of the first.",
    afterSending:
      "This device keeps one mark that a report was sent for this survey, so that none is sent " +
      "twice. The mark holds no answers and no report.",
    keepsNothing:
      "This browser lets the page keep nothing, so it cannot know next time that you answered. " +
      "Please do not answer again: every further report would weaken your protection.",
    remove: "Remove the trace from this device",
    removedHeading: "The trace was removed",
    removed:
      "Nothing about this survey is kept by this page any more. The browser’s own history may " +
      "still list the address. Please do not answer again: every further report would weaken " +
      "your protection.",
  },

  refused: {
    heading: "Your report was not accepted",
    kept:
      "The report is kept on this device, unchanged. If it is tried again, exactly the same report " +
      "is sent: a new one is never made, because several would weaken your protection.",
    keptHere:
      "The report is kept, unchanged, as long as this page stays open. If it is tried again, " +
      "exactly the same report is sent: a new one is never made.",
    because: /** @type {Readonly<Record<number, string>>} */ ({
      400: "The survey could not read the report.",
      403: "The survey takes reports only from its own page.",
      404: "There is no survey at this address any more.",
      409: "The survey has changed since this page was loaded, or its link was already used.",
      410: "The survey is closed and takes no more reports.",
      413: "The report is larger than this survey takes.",
      415: "The survey did not recognize the report’s format.",
      422: "The survey found a value in the report that does not fit its questions.",
    }),
    other: (/** @type {number} */ status) => `The survey refused the report (status ${status}).`,
    detail: "The survey’s own words:",
    again: "Try again",
    what: "What this report says",
    warning:
      "Someone could ask you to show this. You do not have to, and you can say what is true: each " +
      "line may be a random answer.",
    warningByChance:
      "Someone could ask you to show this. You do not have to, and you can say what is true: every " +
      "answer can lead to each of these lines.",
  },

  damaged: {
    heading: "This device keeps something for this survey that cannot be read",
    text:
      "It may be a report that was already sent. No new report is made, because several would " +
      "weaken your protection. If you are certain that none was sent, you can remove it and open " +
      "the page again.",
  },

  earlier:
    "This device already had a report for this survey, made before, perhaps in another tab. The " +
    "answers you gave just now were not used and are forgotten.",

  cannot: {
    heading: "This survey cannot start",
    headingClosed: "This survey is closed",
    nothing: "Nothing was asked, and nothing was sent.",
    nothingSent: "Your answers are forgotten. Nothing was sent.",
    because: {
      randomness:
        "This browser offers no secure random numbers. Without them your answers could not be " +
        "protected. Try a current browser.",
      crypto:
        "This browser cannot check the survey, because it is too old or because the address does " +
        "not begin with https. Try a current browser, or ask whoever sent the link.",
      other_definition:
        "The survey at this address is not the one your link was made for. Ask whoever sent the " +
        "link.",
      too_weak:
        "This survey would protect your answers less than this page allows. Please tell whoever " +
        "sent the link.",
      malformed: "The survey could not be read. Please tell whoever sent the link.",
      missing: "There is no survey at this address. Check the link.",
      closed: "It takes no more reports. Thank you for coming.",
      unavailable: "The survey could not be loaded. Check your connection and try again.",
      unexpected: "Something went wrong on this page. Try again, or tell whoever sent the link.",
    },
    again: "Try again",
  },

  footer: {
    definition: "Survey",
    code: "Page code",
  },
};
