const LF = 10
const CR = 13

/** Finds the ends of server-sent events in the bytes of a stream: an event ends with an empty line. */
export class EventEnds {
  #lineIsEmpty = true
  #afterCr = false

  /** The position after each end of an event in the next bytes of the stream. */
  endsIn(bytes: Uint8Array): number[] {
    const ends: number[] = []
    for (let index = 0; index < bytes.length; index += 1) {
      const byte = bytes[index]
      const isSecondOfTwo = byte === LF && this.#afterCr // CR LF ends one line
      this.#afterCr = byte === CR
      if (isSecondOfTwo) continue
      const endsLine = byte === LF || byte === CR
      if (endsLine && this.#lineIsEmpty) {
        ends.push(byte === CR && bytes[index + 1] === LF ? index + 2 : index + 1)
      }
      this.#lineIsEmpty = endsLine
    }
    return ends
  }
}
