const prefix = crypto.randomUUID().slice(0, 8)
let names = 0

/** A subject that nobody has used yet: a Redis that is not ours is not flushed. */
export const newSubject = () => `${prefix}.${++names}`
