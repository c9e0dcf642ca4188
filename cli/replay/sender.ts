import { cached } from './cache.ts'

/** An address of a log. Its lines share one object, so that one lookup for each line finds all that is known about it. */
export class Sender {
  readonly ip: string
  /** By the numbers of `BySender`. */
  readonly known: unknown[] = [undefined, undefined, undefined]

  constructor(ip: string) {
    this.ip = ip
  }
}

/** The part of a log line that names its sender. */
interface SentBy {
  ip?: string | undefined
  sender?: Sender | undefined
}

let users = 0

/** A value for each sender. Values are lost when a log has so many addresses that some are forgotten. */
export class BySender<Value> {
  readonly #user = users++
  /** The senders of lines that no reader has made. */
  readonly #others = cached((ip) => new Sender(ip))

  get(line: SentBy): Value | undefined {
    return this.#of(line).known[this.#user] as Value | undefined
  }

  set(line: SentBy, value: Value): void {
    this.#of(line).known[this.#user] = value
  }

  #of({ sender, ip = '' }: SentBy): Sender {
    return sender ?? this.#others(ip)
  }
}
