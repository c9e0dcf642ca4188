// Preloaded by commands that run our scripts, in plain JavaScript: lets Node import *.lua as text, as
// wrangler's Text rule does for the Worker.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

registerHooks({
  load(url, context, nextLoad) {
    if (!url.endsWith('.lua')) return nextLoad(url, context)
    const text = readFileSync(new URL(url), 'utf8')
    return {
      format: 'module',
      shortCircuit: true,
      source: `export default ${JSON.stringify(text)}`,
    }
  },
})
