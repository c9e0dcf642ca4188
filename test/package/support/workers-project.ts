import { join } from 'node:path'
import { expect } from 'vitest'
import { startStack } from '../../../dev/stack.ts'
import type { Consumer } from './consumer.ts'
import { expectOneRefusal } from './eleven.ts'

/** The files that `npm create hono` writes for the template cloudflare-workers (honojs/starter), except src/index.ts. */
export const template: Record<string, string> = {
  'package.json': `{
  "name": "my-app",
  "type": "module",
  "scripts": {
    "dev": "wrangler dev",
    "deploy": "wrangler deploy --minify",
    "cf-typegen": "wrangler types --env-interface CloudflareBindings"
  }
}
`,
  'tsconfig.json': `{
  "compilerOptions": {
    "target": "ESNext",
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "strict": true,
    "skipLibCheck": true,
    "lib": [
      "ESNext"
    ],
    "jsx": "react-jsx",
    "jsxImportSource": "hono/jsx"
  },
}`,
  'wrangler.jsonc': `{
  "$schema": "node_modules/wrangler/config-schema.json",
  "name": "my-app",
  "main": "src/index.ts",
  "compatibility_date": "2025-08-03"
}
`,
}

/** Builds the Worker of a project with its own wrangler, and expects the eleventh request to be refused in workerd. */
export async function expectLimitedWorker({ folder, run }: Consumer): Promise<void> {
  const outdir = join(folder, 'out')
  await run('wrangler', 'deploy', '--dry-run', '--minify', '--outdir', outdir)
  const stack = await startStack({ worker: outdir })
  try {
    await expectOneRefusal(() => stack.fetch('/'))
    expect((await stack.fetch('/', { ip: '203.0.113.8' })).status).toBe(200)
  } finally {
    await stack.stop()
  }
}
