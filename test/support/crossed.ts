/** What workerd's log says where a request waited for what another one made. */
export const CROSSED = /different request|hung|I\/O|promise|has since ended/i
