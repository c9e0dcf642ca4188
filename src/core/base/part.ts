import type { KeyFault } from './decision.ts'

/** One part of the partition key of a request. A part without a value is missing, or has a `fault`. */
export type Part = [label: string, value: string | undefined, fault?: KeyFault]

const texts = new WeakMap<Part[], string>()

/** Encodes the parts as JSON. Joined values would collide: ("a", "bc") with ("ab", "c"), and missing with empty. */
export function canonical(parts: Part[]): string {
  const known = texts.get(parts)
  if (known !== undefined) return known
  const text = JSON.stringify(parts.map(([label, value]) => [label, value ?? null]))
  if (Object.isFrozen(parts)) texts.set(parts, text)
  return text
}

/** A credential that is present but does not identify a client. The origin may still accept it, unlike a missing one. */
export class Unusable {
  readonly why: KeyFault
  constructor(why: KeyFault) {
    this.why = why
  }
}

export const UNREADABLE = new Unusable('unreadable')
