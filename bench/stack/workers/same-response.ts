/** Responds as Sluice does, and decides nothing. Makes one GET for each request. */
import { get, undecided } from './undecided.ts'

export default undecided(get)
