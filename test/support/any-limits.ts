import fc from 'fast-check'

/** One to four limits of a request: of three subjects, each with these terms at most once. A cost is 0 to 3 units. */
export const anyLimits = <Terms extends { tag: string }>(terms: readonly Terms[]) =>
  fc.uniqueArray(
    fc.record({
      subject: fc.constantFrom('a', 'b', 'c'),
      terms: fc.constantFrom(...terms),
      cost: fc.integer({ min: 0, max: 3 }),
    }),
    { minLength: 1, maxLength: 4, selector: ({ subject, terms }) => `${subject} ${terms.tag}` },
  )
