/** A host, perhaps with a port, without characters that would end it early in a URL. */
export const HOST = /^[^\s/?#@\\]+$/
