/** The commands of `sluice`. Each one imports its code when it runs. */

import type { Command } from './call.ts'

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
    name: 'build',
    about: 'write the configuration as a module without the parser',
    run: async (args, call) => (await import('./build.ts')).main(args, call),
  },
  {
    name: 'explain',
    about: 'show which policies apply to a request',
    run: async (args, { title, onUsageError }) =>
      (await import('./explain/cli.ts')).main(args, title, onUsageError),
  },
  {
    name: 'replay',
    about: 'show what a configuration would have done to an access log',
    run: async (args, call) => (await import('./replay.ts')).main(args, call),
  },
  {
    name: 'verify',
    about: 'prove that a deployment limits',
    run: async (args, call) => (await import('./verify.ts')).main(args, call),
  },
  {
    name: 'dashboard',
    about: 'show live what a Worker admits and refuses',
    run: async (args, call) => (await import('./dashboard.ts')).main(args, call),
  },
  {
    name: 'docs',
    about: 'print the documentation as Markdown',
    run: async (args, call) => (await import('./docs.ts')).main(args, call),
  },
  {
    name: 'help',
    about: 'explain a finding, a log event, a field or a command',
    run: async (args, call) => (await import('./docs.ts')).help(args, call),
  },
  {
    name: 'completion',
    about: 'print a script that completes commands and options in a shell',
    run: async (args, call) => (await import('./completion.ts')).main(args, call, commands),
  },
  {
    name: 'bridge',
    about: "serve Upstash's REST API from any Redis",
    run: async (args, { title, onUsageError }) =>
      (await import('sluice-upstash-bridge/cli')).main(args, title, onUsageError),
  },
]
