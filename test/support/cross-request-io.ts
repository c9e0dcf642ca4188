/** Matches the errors that workerd logs if a request waits for the I/O of another request. */
export const CROSS_REQUEST_IO = /different request|hung|I\/O|promise|has since ended/i
