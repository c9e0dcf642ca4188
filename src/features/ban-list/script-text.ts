// Generated from lua/ by `npm run lua`.

/** The script of the list of bans, shortened. */
export const banListScript =
  "#!lua flags=allow-key-locking\nlocal a,c=KEYS[1],tonumber(ARGV[1])\nif ARGV[1]==''then\nlocal d=redis.call('TIME')\nc=d[1]*1000+math.floor(d[2]/1000)\nend\nredis.call('ZREMRANGEBYSCORE',a,'-inf',string.format('%.0f',c))\nif ARGV[2]=='page'then\nlocal f=redis.call('ZCARD',a)\nlocal g=redis.call('ZCOUNT',a,ARGV[3],ARGV[3])\nreturn{f,redis.call('ZREVRANGEBYSCORE',a,ARGV[3],'-inf','WITHSCORES','LIMIT',0,g+ARGV[4])}\nend\nfor b=3,#ARGV,2 do\nif ARGV[b]=='0'then\nredis.call('ZREM',a,ARGV[b+1])\nelse\nredis.call('ZADD',a,ARGV[b],ARGV[b+1])\nend\nend\nredis.call('ZREMRANGEBYRANK',a,0,-10001)\nlocal e=redis.call('ZREVRANGE',a,0,0,'WITHSCORES')[2]\nif e then\nredis.call('PEXPIRE',a,string.format('%.0f',e-c+60000))\nend\n"
