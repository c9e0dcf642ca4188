/** The commands of the documentation and the output that it shows. */
import { isConfig } from './examples.ts'
import { type Block, blocksOf, pages } from './pages.ts'

export interface Step {
  command: string
  /** What the page shows below the command. */
  output: string
}

export interface Transcript {
  title: string
  /** The name of the example above it on the page, or '' for the configuration that `npm start` runs. */
  example: string
  steps: Step[]
}

/** The commands of a block ```console, and their output. */
export const commandsOf = ({ code }: Block): Step[] =>
  code
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      // The command ends at the first line end without a backslash and outside of quotes.
      const [, command, output] = /^((?:'[^']*'|"[^"]*"|\\\n|[^\n'"])*)\n?(.*)$/s.exec(text)!
      return { command: command!, output: output! }
    })

export const stepsOf = (block: Block): Step[] =>
  commandsOf(block).filter(({ command }) => command.startsWith('curl '))

/** Blocks whose commands do not go to a running example. */
const OTHERS = ['session', 'elsewhere']

/** The curl commands that go to a running example. */
export const transcripts = pages.flatMap((page): Transcript[] => {
  let example = ''
  return blocksOf(page).flatMap((block) => {
    if (isConfig(block)) example = block.name
    if (block.language !== 'console' || OTHERS.includes(block.name)) return []
    const steps = stepsOf(block)
    const named = block.name === 'start' ? '' : example
    return steps.length ? [{ title: `${page.path}:${block.line}`, example: named, steps }] : []
  })
})
