export const mediaTypes = { json: 'application/json', text: 'text/plain', html: 'text/html' }
export type BodyKind = keyof typeof mediaTypes

/**
 * The kind of body that a client prefers (RFC 9110, 12.5.1). Of equal kinds the first is chosen, but HTML if the client names it, as
 * browsers do. @param kinds at least one, with `html` last
 */
export function preferred(accept: string, kinds: BodyKind[]): BodyKind {
  let chosen = kinds[0]!
  let most = 0
  for (const kind of kinds) {
    const type = mediaTypes[kind]
    // The ranges that match the type, the most specific last.
    const names = ['*/*', type.replace(/\/.*/, '/*'), type]
    let quality = 0
    let rank = -1
    for (const range of accept.toLowerCase().replaceAll('problem+', '').split(',')) {
      const [, name, q = 1] = /^\s*([^\s;]*)(?:.*;\s*q=([\d.]+))?/s.exec(range)!
      const specific = names.indexOf(name!)
      if (specific > rank || (specific >= 0 && specific === rank && +q > quality)) {
        rank = specific
        quality = +q
      }
    }
    if (quality > most || (quality && quality === most && kind === 'html' && rank > 0)) {
      chosen = kind
      most = quality
    }
  }
  return chosen
}
