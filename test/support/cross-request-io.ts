/** What workerd's log says where a request waited for what another one made. */
export const CROSS_REQUEST_IO = /different request|hung|I\/O|promise|has since ended/i
