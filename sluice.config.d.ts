/** The policies and the origin. Operators edit this file only. docs/reference/configuration.md documents every field. */
declare const _default: import("./src/index.ts").ConfigOptions<unknown>;
export default _default;
