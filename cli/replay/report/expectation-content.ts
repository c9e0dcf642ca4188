import { durationText, numberText } from '../../dashboard/page/text.ts'
import type { Section } from './document.ts'
import type { ExpectationReport, ReplayReport } from './types.ts'
import { betweenText, countText, plainText, timeText } from './words.ts'

/** What the configuration expects, and what the log shows. */
export const expectationSections = ({ expectations = [] }: ReplayReport): Section[] =>
  expectations.length === 0
    ? []
    : [
        {
          title: 'Expectations',
          blocks: [{ kind: 'list', items: expectations.map(expectationText) }],
        },
      ]

/** True if some client exceeds the expectation, whichever way the requests of a second came. */
export const isExceeded = ({ most, atMost }: ExpectationReport): boolean => most.high > atMost

/** One expectation in a sentence. */
export function expectationText(one: ExpectationReport): string {
  const { title, atMost, inMs, most, client, from, notReplayed } = one
  const expected = `${plainText(title)}: at most ${numberText(atMost)} in ${durationText(inMs)}.`
  if (notReplayed.length > 0) return `${expected} Not replayed: ${notReplayed.join('; ')}.`
  if (client === undefined) return `${expected} The log has no such request that is admitted.`
  const requests = most.low === most.high ? countText(most.high, 'request') : betweenText(most)
  const verb = isExceeded(one) ? 'Exceeded:' : 'Holds:'
  return `${expected} ${verb} ${requests} of ${plainText(client)} pass, from ${timeText(from!)} UTC.`
}
