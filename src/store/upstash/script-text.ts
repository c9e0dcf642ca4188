/** The text of the Lua script. The build replaces this file with the finished text and its SHA-1 (dev/package/inline-script.ts). */
/// <reference path="../../lua.d.ts" />
import argumentsText from '../../../lua/arguments.lua'
import concurrency from '../../../lua/concurrency.lua'
import decide from '../../../lua/decide.lua'
import fixedWindow from '../../../lua/fixed_window.lua'
import penalty from '../../../lua/penalty.lua'
import slidingLog from '../../../lua/sliding_log.lua'
import slidingWindow from '../../../lua/sliding_window.lua'
import tokenBucket from '../../../lua/token_bucket.lua'
import { hexDigest } from '../../base/digest.ts'

/** Removes comments and indentation, because the first call of every isolate sends the whole text. */
const trim = (lua: string) => lua.replace(/^[ \t]*(--.*)?\n|^[ \t]+/gm, '')

/** The whole script. Upstash reads the flag only at the very beginning. */
export const script = `#!lua flags=allow-key-locking\n${[
  fixedWindow,
  slidingWindow,
  slidingLog,
  tokenBucket,
  concurrency,
  penalty,
  argumentsText,
  decide,
]
  .map(trim)
  .join('')}`

/** The SHA-1 by which Redis knows the script. */
export const scriptSha = (): Promise<string> => hexDigest('SHA-1', script)
