/** Colours of a terminal. Without one, and with NO_COLOR, no text has any. */
import { styleText } from 'node:util'

type Style = 'green' | 'red' | 'yellow' | 'dim'

/** @param stream where the text goes. Defaults to the standard output */
export const paint = (style: Style, text: string, stream: object = process.stdout): string =>
  (stream as { hasColors?(): boolean }).hasColors?.()
    ? styleText(style, text, { validateStream: false })
    : text

const MARKS: Record<string, Style> = {
  '✓': 'green',
  yes: 'green',
  Wrote: 'green',
  '✗': 'red',
  '~': 'yellow',
  '–': 'yellow',
  no: 'dim',
}

/** Prints a text. The mark or word at the beginning of a line has its colour; a comment is dim. */
export const say = (text: string): void =>
  console.log(
    text
      .replace(/^(?:[✓✗~–]|Wrote|yes|no)(?= )/gm, (mark) => paint(MARKS[mark]!, mark))
      .replace(/^ +# .*/gm, (comment) => paint('dim', comment)),
  )
