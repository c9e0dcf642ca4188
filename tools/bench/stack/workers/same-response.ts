/** Responds as Sluice does, and decides nothing. Makes one GET for each request. */
import { get } from './get.ts'
import { undecided } from './undecided.ts'

export default undecided(get)
