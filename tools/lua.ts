/**
 * `npm run lua`: writes the shortened Lua into modules of the Worker. Run it after each change of
 * `lua/`. With `--show CONFIG [POLICY…]` it writes nothing, and prints the compiled script of the policies, with its comments.
 */
import { writeFile } from 'node:fs/promises'
import { luaModules } from './lua/script.ts'
import { shownScript } from './lua/show.ts'

const [option, file, ...names] = process.argv.slice(2)
if (option === '--show' && file) {
  try {
    console.log(await shownScript(file, names))
  } catch (error) {
    console.error(`${file}: ${(error as Error).message}`)
    process.exit(1)
  }
} else if (option === undefined) {
  for (const [file, text] of luaModules) await writeFile(file, text())
} else {
  console.error('Usage: npm run lua [-- --show CONFIG [POLICY…]]')
  process.exit(1)
}
