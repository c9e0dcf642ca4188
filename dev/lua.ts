/** `npm run lua`: writes the shortened Lua script and its SHA-1 into a module of the Worker. Run it after each change of `lua/`. */
import { writeFile } from 'node:fs/promises'
import { moduleFile, scriptModule } from './lua/script.ts'

await writeFile(moduleFile, scriptModule())
