/** The curl commands of the documentation and the output that it shows: blocks ```console. */
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

export const stepsOf = ({ code }: Block): Step[] =>
  code
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      // The command ends at the first line end without a backslash and outside of quotes.
      const [, command, output] = /^((?:'[^']*'|"[^"]*"|\\\n|[^\n'"])*)\n?(.*)$/s.exec(text)!
      return { command: command!, output: output! }
    })
    .filter(({ command }) => command.startsWith('curl '))

export const transcripts = pages.flatMap((page): Transcript[] => {
  let example = ''
  return blocksOf(page).flatMap((block) => {
    if (isConfig(block)) example = block.name
    if (block.language !== 'console' || block.name === 'elsewhere') return []
    const steps = stepsOf(block)
    const named = block.name === 'start' ? '' : example
    return steps.length ? [{ title: `${page.path}:${block.line}`, example: named, steps }] : []
  })
})
