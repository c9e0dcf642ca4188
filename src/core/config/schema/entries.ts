/** Fields that a function of another entry of the package makes, such as `jwt: jwt({…})` with `jwt` from `sluice/jwt`. */
import * as v from 'valibot'

export const resultOf = (name: string, entry = name) =>
  `the result of ${name}() from 'sluice/${entry}'`

/** Accepts the result of the function, by one of its members. */
export const madeBy = <T>(name: string, member: keyof T & string, entry?: string) =>
  v.custom<T>(
    (input) => /^(function|object)$/.test(typeof Object(input)[member]),
    resultOf(name, entry),
  )
