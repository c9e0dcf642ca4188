import type { BodyPart } from '../../core/config/schema/key.ts'
import type { PartSource } from '../../core/program/source.ts'
import { folded } from '../../core/request/fold.ts'

/** A value of the body as a part of a key. */
export const bodySource: PartSource = {
  compile:
    (part: BodyPart, { unreadable }) =>
    ({ message }) =>
      message?.read(part, unreadable),
  fold: (value, { digest }: BodyPart) => (digest ? value : folded(value)),
}
