/**
 * Every command of Redis 7.0 that can run over REST, one in each line. Replies are the same in each run: sets contain
 * small integers, and random commands have one member to choose from.
 */
export const SAMPLES = `
# strings
set s hello
set s world XX GET
get s
append s !
strlen s
getrange s 1 3
substr s 1 3
setrange s 1 0
getset s again
getex s EX 100
getex s PERSIST
setnx s no
setex t 100 v
psetex t 100000 v
getdel t
mset a 1 b 2
mget a b c
msetnx b 3 c 4
incr a
incrby a 5
incrbyfloat a 0.5
set n 10
decr n
decrby n 4
decrby s 1
mset x ohmytext y mynewtext
lcs x y
lcs x y IDX MINMATCHLEN 4 WITHMATCHLEN
# bitmaps
setbit bits 7 1
getbit bits 7
bitcount bits
bitcount bits 0 7 BIT
bitpos bits 1
bitop NOT notbits bits
bitop XOR xorbits bits notbits
bitfield bits SET u8 0 255 GET u4 0 INCRBY u2 100 1 OVERFLOW FAIL INCRBY u2 102 3
bitfield_ro bits GET u8 0
# keys
exists a b nothing
type a
type nothing
expire a 100
expire a 50 GT
pexpire a 100000
persist a
ttl a
pttl a
expireat a 4000000000
expiretime a
pexpireat a 4000000000000
pexpiretime a
rename a aa
rename nothing aa
renamenx aa b
copy b bb
copy b b2 REPLACE
touch b bb
unlink bb
del b2
object encoding n
object refcount s
object freq s
object help
keys x
scan 0 MATCH x COUNT 1000
dbsize
sort_ro y
dump n
memory usage n
# lists
rpush l 1 2 3 4
lpush l 0
rpushx l 5
lpushx nothing 1
llen l
lrange l 0 -1
lindex l -1
linsert l BEFORE 3 2.5
lset l 0 zero
lset l 99 x
lpos l 3
lpos l 3 RANK -1 COUNT 0
lrem l 1 2.5
ltrim l 0 3
lpop l
rpop l 2
lmove l l2 LEFT RIGHT
rpoplpush l2 l
lmpop 2 nothing l LEFT COUNT 2
lpop nothing
rpush nums 3 1 2
sort nums
sort nums DESC LIMIT 0 2 STORE sorted
sort_ro nums ALPHA
# hashes
hset h f1 1 f2 2
hmset h f3 three
hsetnx h f3 no
hget h f1
hmget h f1 nothing
hgetall h
hincrby h f1 5
hincrbyfloat h f2 0.25
hincrby h f3 1
hkeys h
hvals h
hlen h
hstrlen h f3
hexists h f3
hscan h 0
hdel h f1 f2
hrandfield h
hrandfield h 1 WITHVALUES
# sets
sadd i1 1 2 3
sadd i2 2 3 4
scard i1
sismember i1 1
smismember i1 1 9
smembers i1
sinter i1 i2
sintercard 2 i1 i2 LIMIT 1
sunion i1 i2
sdiff i1 i2
sinterstore i3 i1 i2
sunionstore i4 i1 i2
sdiffstore i5 i1 i2
smove i1 i2 1
srem i2 1
sscan i2 0
srandmember i5
spop i5
sadd i1 1
# sorted sets
zadd z 1 one 2 two 3 three
zadd z GT CH 5 three
zadd z INCR 1 one
zcard z
zcount z 2 +inf
zscore z one
zmscore z one nothing
zincrby z 0.5 one
zrank z two
zrevrank z two
zrange z 0 -1 WITHSCORES
zrange z 1 +inf BYSCORE LIMIT 0 2
zrange z 0 0 REV
zrevrange z 0 -1
zrangebyscore z 1 3
zrevrangebyscore z +inf -inf WITHSCORES
zadd lex 0 a 0 b 0 c
zrangebylex lex [a (c
zrevrangebylex lex + -
zlexcount lex - +
zrangestore zs z 0 -1
zadd z2 10 one 20 four
zinter 2 z z2 WITHSCORES
zintercard 2 z z2
zunion 2 z z2 WEIGHTS 1 2 AGGREGATE MAX WITHSCORES
zdiff 2 z z2
zinterstore z3 2 z z2
zunionstore z4 2 z z2
zdiffstore z5 2 z z2
zscan z2 0
zpopmin z2
zpopmax z4 2
zmpop 2 nothing z3 MIN
zremrangebyscore zs 0 1
zremrangebyrank zs 0 0
zremrangebylex lex [a [a
zrem z one
zadd zr 1 only
zrandmember zr
zrandmember zr 1 WITHSCORES
zadd s 1 x
# hyperloglogs
pfadd p a b c
pfadd p2 c d
pfcount p
pfcount p p2
pfmerge p3 p p2
# places
geoadd g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
geodist g Palermo Catania km
geohash g Palermo Catania
geopos g Palermo nothing
georadius g 15 37 200 km ASC
georadius_ro g 15 37 200 km WITHDIST ASC
georadiusbymember g Palermo 200 km ASC
georadiusbymember_ro g Palermo 200 km COUNT 1 ASC
geosearch g FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST
geosearchstore g2 g FROMMEMBER Palermo BYRADIUS 200 km
# streams
xadd x1 1-1 f v
xadd x1 1-2 f v2 g w
xadd x1 1-1 f v
xlen x1
xrange x1 - +
xrevrange x1 + - COUNT 1
xread COUNT 1 STREAMS x1 0
xread STREAMS x1 9-9
xgroup CREATE x1 group 0
xgroup CREATECONSUMER x1 group c2
xreadgroup GROUP group c1 COUNT 2 STREAMS x1 >
xpending x1 group
xack x1 group 1-1
xclaim x1 group c2 0 1-2 JUSTID
xautoclaim x1 group c2 0 0 JUSTID
xinfo STREAM x1
xinfo GROUPS x1
xgroup SETID x1 group $
xgroup DELCONSUMER x1 group c1
xgroup DESTROY x1 group
xsetid x1 5-5
xdel x1 1-1
xtrim x1 MAXLEN 0
# scripts and functions
eval return{KEYS[1],ARGV[1],redis.call('incr',KEYS[1])} 1 counter x
eval_ro return(redis.call('get',KEYS[1])) 1 counter
eval_ro return(redis.call('incr',KEYS[1])) 1 counter
script load return(1)
evalsha a19b7eaa2c2ca24f71e8d3db9f5a44ae9e6a6fa4 0
evalsha_ro a19b7eaa2c2ca24f71e8d3db9f5a44ae9e6a6fa4 0
script exists a19b7eaa2c2ca24f71e8d3db9f5a44ae9e6a6fa4
script kill
script flush
fcall nothing 0
fcall_ro nothing 0
function list
function kill
function flush
# publishing
publish channel message
spublish channel message
pubsub channels
pubsub numsub channel
pubsub numpat
pubsub shardchannels
# server and connection
ping
ping text
echo text
command count
command getkeys mset a 1 b 2
command info get
acl whoami
acl cat
flushdb
flushall ASYNC
`
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.split(' '))

/** Commands that families.test.ts tests separately, since their replies vary. */
export const TRIED_ELSEWHERE = ['time', 'randomkey', 'info', 'lolwut', 'restore']

/** Commands of Redis 7.2 to 8.0 and Valkey 9. The bridge forwards them like the others. `refused.test.ts` tests CLIENT SETINFO. */
export const LATER = new Set(
  `client|setinfo delifeq msetex clusterscan
   hexpire hexpireat hexpiretime hpersist hpexpire hpexpireat hpexpiretime hpttl httl hgetdel hgetex hsetex
   vadd vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrem vsetattr vsim`.split(
    /\s+/,
  ),
)
