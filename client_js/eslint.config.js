/** No syntax and no feature that Safari 15 or Firefox ESR lacks; style is biome's. */

import compat from "eslint-plugin-compat";

export default [
  {
    ...compat.configs["flat/recommended"],
    files: ["src/*.js", "npm/*.js"],
    languageOptions: { ecmaVersion: 2021, sourceType: "module" },
  },
];
