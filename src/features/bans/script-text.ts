// Generated from lua/ by `npm run lua`.

/** The script of the list of bans, shortened. */
export const banListScript =
  "#!lua flags=allow-key-locking\nlocal a,c=KEYS[1],tonumber(ARGV[1])\nif ARGV[1]==''then\nlocal e=redis.call('TIME')\nc=e[1]*1000+math.floor(e[2]/1000)\nend\nredis.call('ZREMRANGEBYSCORE',a,'-inf',string.format('%.0f',c))\nif ARGV[2]=='page'then\nlocal h=redis.call('ZCARD',a)\nlocal i=redis.call('ZCOUNT',a,ARGV[3],ARGV[3])\nreturn{h,redis.call('ZREVRANGEBYSCORE',a,ARGV[3],'-inf','WITHSCORES','LIMIT',0,i+ARGV[4])}\nend\nfor f=3,#ARGV,2 do\nlocal b,d=ARGV[f],ARGV[f+1]\nif ARGV[2]=='change'and b~='0'then\nredis.call('ZADD',a,b,d)\nelseif b=='0'or redis.call('ZSCORE',a,d)==b then\nredis.call('ZREM',a,d)\nend\nend\nredis.call('ZREMRANGEBYRANK',a,0,-10001)\nlocal g=redis.call('ZREVRANGE',a,0,0,'WITHSCORES')[2]\nif g then\nredis.call('PEXPIRE',a,string.format('%.0f',g-c+60000))\nend\n"
