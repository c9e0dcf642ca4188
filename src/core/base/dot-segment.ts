/** A segment `.` or `..`, also encoded, after any separator that `Request` knows. */
const DOT_SEGMENT = /[/\\](\.|%2e){1,2}(?=[/\\]|$)/i

/**
 * Reports whether the path of a request target or URL has a segment `.` or `..`, also encoded. `Request` resolves them (URL standard, 4.4),
 * but routers of origins may not, so a policy could apply to another path than the one that is served. Browsers and HTTP clients resolve
 * them before they send a request.
 * @param target a path, or an absolute URL, with or without a query
 */
export const hasDotSegment = (target: string): boolean =>
  DOT_SEGMENT.test(target.split(/[?#]/, 1)[0]!)
