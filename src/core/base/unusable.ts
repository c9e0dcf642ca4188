import type { KeyFault } from './decision.ts'

/** A credential that is present but does not identify a client. The origin may still accept it, unlike a missing one. */
export class Unusable {
  readonly why: KeyFault
  constructor(why: KeyFault) {
    this.why = why
  }
}

export const UNREADABLE = new Unusable('unreadable')
