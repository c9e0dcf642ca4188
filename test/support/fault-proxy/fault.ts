import { type Kind, kinds } from './kinds.ts'

/** A fault as text: its name, optionally followed by `=` and an argument, such as `delay=1000`. */
export type FaultText = keyof typeof kinds | `${keyof typeof kinds}=${string | number}`

/** Thrown for an unknown fault or an invalid argument or option. */
export class FaultError extends Error {
  override name = 'FaultError'
}

export interface Fault {
  name: keyof typeof kinds
  run: Kind['run']
  argument: string
}

/** @throws FaultError when the name is unknown or the argument is invalid */
export function parseFault(text: string): Fault {
  const [, name = '', given] = /^([^=]*)=?(.*)$/s.exec(text)!
  if (!Object.hasOwn(kinds, name)) {
    throw new FaultError(
      `"${name}" is not a fault: expected one of ${Object.keys(kinds).join(', ')}`,
    )
  }
  const kind: Kind = kinds[name as Fault['name']]
  const argument = given || kind.argument?.default || ''
  if (given && !kind.argument) throw new FaultError(`${name}: expected no argument, got "${given}"`)
  if (kind.argument && !kind.argument.pattern.test(argument)) {
    throw new FaultError(`${name}: expected ${kind.argument.expected}, got "${argument}"`)
  }
  return { name: name as Fault['name'], run: kind.run, argument }
}
