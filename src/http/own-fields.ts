/** CGI does not distinguish `_` from `-` (RFC 3875, 4.1.18). */
const OWN = /^sluice[-_]/

/** Removes all `Sluice-*` fields. */
export function dropOwnFields(headers: Headers): void {
  for (const name of [...headers.keys()].filter((name) => OWN.test(name))) headers.delete(name)
}
