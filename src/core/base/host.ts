/** A host of a request, perhaps with a port. Other characters would end it early in a URL, or change it. */
export const HOST = /^([\w.-]+|\[[\da-f:.]+\])(:\d{0,5})?$/i
