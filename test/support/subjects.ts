const prefix = crypto.randomUUID().slice(0, 8)
let names = 0

/** A subject that no other test has used. Tests do not flush a Redis that they did not start. */
export const newSubject = () => `${prefix}.${++names}`
