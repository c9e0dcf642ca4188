/** True if an algorithm keeps the state of a limit under a key of its own, and not in the record of the subject. */
export const hasOwnKey = (
  algorithm: string | undefined,
): algorithm is 'sliding-log' | 'concurrency' | 'distinct' =>
  algorithm === 'sliding-log' || algorithm === 'concurrency' || algorithm === 'distinct'
