/** Reports whether a value is valid as the `origin` of a configuration and as the variable `ORIGIN`. */
export const isOrigin = (input: unknown): input is string =>
  input === 'zone' ||
  (typeof input === 'string' && /^https?:\/\/[^\s?#@]+$/.test(input) && URL.canParse(input))
