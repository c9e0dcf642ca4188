/** The commands of `sluice`. Each one imports its code when it runs. */

import { needNode } from '../project/node.ts'
import type { Call } from './call.ts'

export interface Command {
  name: string
  about: string
  run(args: string[], call: Call): Promise<unknown>
}

export const commands: Command[] = [
  {
    name: 'init',
    about: 'write a configuration, a Worker and a first test into this folder',
    run: async (args, call) => (await import('./init/init.ts')).main(args, call),
  },
  {
    name: 'dev',
    about: 'run the Worker of this folder with a Redis and a demo origin',
    run: async (args, call) => (await import('./dev.ts')).main(args, call),
  },
  {
    name: 'check',
    about: 'find mistakes in sluice.config.ts',
    run: async (args, call) => (await import('./check.ts')).main(args, call),
  },
  {
    name: 'explain',
    about: 'show which policies apply to a request',
    run: async (args, { title, onUsageError }) =>
      (await import('../explain/cli.ts')).main(args, title, onUsageError),
  },
  {
    name: 'bridge',
    about: "serve Upstash's REST API from any Redis",
    run: async (args, { title, onUsageError }) =>
      (await import('sluice-upstash-bridge/cli')).main(args, title, onUsageError),
  },
  {
    name: 'simulate',
    about: 'measure the bill and the exactness of many isolates in virtual time',
    run: async (args, { title, file, onUsageError }) => {
      needNode(22, title)
      // From source, Node must import the Lua files as text.
      if (file.endsWith('.ts')) await import('../../bench/lua-loader.mjs')
      const { main } = await import('../../bench/simulate/cli.ts')
      await main(args, { command: title, onUsageError })
    },
  },
]
