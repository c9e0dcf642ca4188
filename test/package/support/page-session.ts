/** What a reader of a page does, in order: write files, run commands, look at outputs. */
import { type Block, blocksOf, type Page } from '../../support/pages.ts'
import { commandsOf } from '../../support/transcripts.ts'

export type Action =
  | { do: 'write'; file: string; code: string }
  /** The configuration is the shown one. */
  | { do: 'compare'; code: string }
  | { do: 'change'; from: string; to: string }
  /** `line` is that of the block. */
  | { do: 'run'; command: string; shown: string; line: number }
  /** The first terminal prints something. */
  | { do: 'see'; shown: string }

/** A sentence that asks for a change of the configuration. */
const CHANGE = /change `([^`]+)` to `([^`]+)`, and save/
const BACK = /^Change it back\./m

/** True if a session runs the commands of a block: those of a session, and curl commands between them to this machine. */
const runs = ({ language, name, code }: Block) =>
  name === 'session' ||
  (language === 'console' && name === '' && /^\$ curl [^\n]*127\.0\.0\.1/.test(code))

/** @param files the file for each named code block that the reader writes. Blocks `init` show what `sluice init` has written. */
export function actionsOf(page: Page, files: Record<string, string> = {}): Action[] {
  const lines = page.text.split('\n')
  let read = 0
  let change: { from: string; to: string } | undefined
  return blocksOf(page).flatMap((block): Action[] => {
    const prose = lines.slice(read, block.line - 1).join('\n')
    read = block.line + block.code.split('\n').length
    const back: Action[] =
      change && BACK.test(prose) ? [{ do: 'change', from: change.to, to: change.from }] : []
    const [, from, to] = CHANGE.exec(prose) ?? []
    if (!from || !to) return [...back, ...doing(block, files)]
    change = { from, to }
    return [...back, { do: 'change', from, to }, ...doing(block, files)]
  })
}

function doing(block: Block, files: Record<string, string>): Action[] {
  const { name, code, language, line } = block
  const file = files[name]
  if (file) return [{ do: 'write', file, code }]
  if (name === 'init') return [{ do: 'compare', code }]
  if (!runs(block)) return []
  if (language === 'sh') {
    return code
      .trim()
      .split('\n')
      .map((command) => ({ do: 'run', command, shown: '', line }))
  }
  const steps = commandsOf(block)
  if (steps.length === 0) return [{ do: 'see', shown: code }]
  return steps.map(({ command, output }) => ({ do: 'run', command, shown: output, line }))
}
