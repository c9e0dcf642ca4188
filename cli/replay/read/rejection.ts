/** A line that is not a request, with the reason. */
export class Rejection {
  readonly reason: string
  readonly kind: 'unparsed' | 'time' | 'without-request'

  /**
   * @param kind `time`: the line has the form of its format, but its time cannot be right. `without-request`: the line parses, but the
   *   connection sent no HTTP request for a path
   */
  constructor(reason: string, kind: Rejection['kind'] = 'unparsed') {
    this.reason = reason
    this.kind = kind
  }
}
