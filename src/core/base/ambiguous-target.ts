/** A segment `.` or `..`, also encoded, after any separator that `Request` knows; or the separator that origins may not know. */
const DOT_SEGMENT = /[/\\](\.|%2e){1,2}(?=[/\\]|$)|\\/i

// biome-ignore lint/suspicious/noControlCharactersInRegex: the URL parser drops them silently
const DROPPED = /[\x00-\x20\x7f#]/

/**
 * Reports whether `Request` reads a target otherwise than the router of an origin may, so that a policy could apply to another path than the
 * one that is served: it resolves `.` and `..`, also encoded (URL standard, 4.4), reads `\` as `/`, and drops control characters and what
 * follows a `#`. Browsers and HTTP clients do this before they send a request.
 * @param target a path, or an absolute URL, with or without a query
 */
export const isAmbiguous = (target: string): boolean =>
  DROPPED.test(target) || DOT_SEGMENT.test(target.split('?', 1)[0]!)
