/** Matches the parsed settings that read the body, as JSON. A text in quotes cannot match, because its own quotes are escaped. */
const BODY = /"source":"body"|"body":["[]|"graphql":t/

/** Reports whether parsed conditions, keys or costs read the body. */
export const usesBody = (parsed: unknown): boolean => BODY.test(JSON.stringify(parsed))
