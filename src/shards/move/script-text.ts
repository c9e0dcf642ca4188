// Generated from lua/ by `npm run lua`.

/** Precedes the script at an old shard, after the first line. */
export const guard = "do\nlocal a=table.remove(ARGV)\nif a~=''and redis.call('GET',table.remove(KEYS))==a then\nlocal b=string.find(ARGV[1],'idempotency',1,true)and redis.call('GET',KEYS[1])\nlocal c=b and tonumber(string.match(b,'^idem2;[^:]+:(%d+):'))\nlocal d=tonumber(string.match(ARGV[1],'%d+$'))or redis.call('TIME')[1]*1000+1000\nif not c or c<=d then\nreturn redis.error_reply('ERR sluice: key moved')\nend\nend\nend\n"

/** The SHA-1 of the script with the guard. */
export const guardedSha = '6455f1e03f60c9aeb44a627713889de28fca18e7'

export const depart = "#!lua flags=allow-key-locking\nif redis.call('GET',KEYS[1])~=ARGV[1]then\nreturn redis.error_reply('ERR sluice: move: it has not begun')\nend\nlocal f=redis.call('TIME')\nlocal i=string.format('%.0f',f[1]*1000+math.floor(f[2]/1000))\nlocal d={}\nfor e=2,#KEYS do\nlocal b=KEYS[e]\nlocal g=redis.call('TYPE',b).ok\nlocal a,c=nil,''\nif g=='zset'then\na='z;'..table.concat(redis.call('ZRANGE',b,0,-1,'WITHSCORES'),' ')..' '\nelseif g=='string'then\na=redis.call('GET',b)\nif string.find(a,'^moved;')then\nc,a=string.find(a,'^moved;%d+;.')and a or'',nil\nelseif string.find(a,'^idem2;')then\na=nil\nend\nend\nif a then\nc='moved;'..i..';'..a\nredis.call('SET',b,c,'KEEPTTL')\nend\nlocal h=c~=''and redis.call('PTTL',b)or 0\nd[2*e-3]=h<0 and 2678400000 or math.max(1,h)\nd[2*e-2]=c\nend\nreturn d\n"

export const arrive = "#!lua flags=allow-key-locking\nlocal d=0\nfor c=1,#KEYS,2 do\nlocal b,f,g=KEYS[c],KEYS[c+1],ARGV[c]\nlocal h,e=string.match(ARGV[c+1],'^moved;(%d+);(.+)$')\nlocal i=redis.call('GET',f)\nif not i or i+0<h+0 then\nlocal j=redis.call('TYPE',b).ok\nif j=='none'or j=='string'and string.find(redis.call('GET',b),'^moved;')then\nd=d+1\nif string.find(e,'^z;')then\nredis.call('DEL',b)\nlocal a={}\nfor k,l in string.gmatch(string.sub(e,3),'([^ ]+) ([^ ]+) ')do\na[#a+1]=l\na[#a+1]=k\nif#a>=1000 then\nredis.call('ZADD',b,unpack(a))\na={}\nend\nend\nif#a>0 then\nredis.call('ZADD',b,unpack(a))\nend\nelse\nredis.call('SET',b,e)\nend\nredis.call('PEXPIRE',b,g)\nend\nredis.call('SET',f,h,'PX',g)\nend\nend\nreturn d\n"

export const settle = "#!lua flags=allow-key-locking\nfor c,a in ipairs(KEYS)do\nlocal b=ARGV[c]\nif redis.call('TYPE',a).ok=='string'and redis.call('GETRANGE',a,0,#b-1)==b then\nredis.call('SET',a,b,'KEEPTTL')\nend\nend\nreturn#KEYS\n"
