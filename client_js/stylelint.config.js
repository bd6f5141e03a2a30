/**
 * No property and no function that Safari 15 or Firefox ESR lacks; style is biome's.
 *
 * Left out are those that a page reads and works without: where `:focus-visible` is unknown its
 * rule, which hides outlines, falls away as a whole; without `scripting`, a notice shows three seconds
 * later; the others only make phones smoother.
 */

export default {
  plugins: ["stylelint-no-unsupported-browser-features"],
  rules: {
    "plugin/no-unsupported-browser-features": [
      true,
      {
        ignore: ["css-focus-visible", "css-media-scripting", "css-touch-action", "text-size-adjust"],
        ignorePartialSupport: true,
      },
    ],
  },
};
