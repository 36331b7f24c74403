-- Queries of the kinds that people keep as views.

-- table people (id): id bigint, name text, age int, city text, score double, joined timestamp
-- table orders (id): id bigint, person_id bigint, item text, price decimal(12,2), qty int, at timestamp, tags array<text>
-- table items (name): name text, kind text not null, weight double
-- table bids (): auction bigint, bidder bigint, price bigint, channel text, at timestamp not null
-- table clicks (): who bigint not null, page text, ms int, at timestamp, doc json

-- a change costs: rows
SELECT * FROM people;

-- a change costs: rows
SELECT name, age + 1 AS older FROM people WHERE age > 2 AND city IS NOT NULL;

-- a change costs: rows
SELECT p.*, upper(name) AS loud FROM people p WHERE p.city IN ('a', 'b') OR score < 0;

-- a change costs: rows
SELECT * EXCLUDE (name) FROM people;

-- a change costs: rows
SELECT auction, price * 0.908 AS euro, at FROM bids;

-- a change costs: rows
SELECT auction, price FROM bids WHERE auction % 2 = 0;

-- a change costs: rows
SELECT id, unnest(tags) AS tag FROM orders;

-- a change costs: rows
SELECT o.id, t.tag FROM orders o, unnest(o.tags) AS t(tag) WHERE t.tag <> 'a';

-- a change costs: rows
SELECT o.id, t.tag FROM orders o LEFT JOIN unnest(o.tags) AS t(tag) ON true;

-- a change costs: rows
SELECT id, tag FROM orders LATERAL VIEW explode(tags) t AS tag;

-- a change costs: rows
SELECT CASE WHEN age > 3 THEN 'old' WHEN age IS NULL THEN 'none' ELSE 'young' END AS class, age a, a + 1 AS b FROM people;

-- a change costs: rows
SELECT doc ->> 'a' AS a, doc -> 'b' AS b FROM clicks;

-- a change costs: rows
SELECT _key, _partition, _offset, name FROM people;

-- a change costs: rows
SELECT x.v FROM (SELECT name AS v, age FROM people WHERE age > 1) x WHERE x.age < 5;

-- a change costs: rows
WITH old AS (SELECT * FROM people WHERE age > 3) SELECT name FROM old;

-- a change costs: rows
WITH a(n, c) AS (SELECT name, city FROM people), b AS (SELECT n FROM a WHERE c = 'a') SELECT * FROM b;

-- a change costs: rows
SELECT name FROM people ORDER BY name;

-- a change costs: rows
SELECT list_transform(tags, x -> upper(x)) AS loud, len(tags) AS n FROM orders;

-- a change costs: rows
SELECT {'a': age, 'b': name} AS s FROM people;

-- a change costs: rows
SELECT price / 2 AS half, price % 2 AS rest FROM orders;

-- a change costs: rows
SELECT count(*) FROM bids;

-- a change costs: rows
SELECT count(*) AS n, count(age), sum(age), avg(score), min(name), max(joined) FROM people;

-- a change costs: rows
SELECT city, count(*) AS n, sum(age) AS total, avg(age) AS mean FROM people GROUP BY city;

-- a change costs: rows
SELECT city, max(score) - min(score) AS spread FROM people GROUP BY 1 HAVING count(*) > 1;

-- a change costs: rows
SELECT lower(city) AS c, age % 2 AS odd, count(*) FROM people GROUP BY c, odd;

-- a change costs: rows
SELECT city, count(*) FILTER (WHERE age > 3) AS old, sum(score) FILTER (age < 4) AS s FROM people GROUP BY ALL;

-- a change costs: rows
SELECT auction, sum(price), avg(price), count(DISTINCT bidder) FROM bids GROUP BY auction;

-- a change costs: rows
SELECT count(DISTINCT age) AS d, count(*) AS n, sum(DISTINCT age), avg(DISTINCT age) FROM people;

-- a change costs: rows
SELECT city, count(DISTINCT age), max(score), avg(score) FROM people GROUP BY city;

-- a change costs: rows
SELECT bool_and(age > 1), bool_or(age > 5), count_if(age > 2), every(age >= 0) FROM people;

-- a change costs: rows
SELECT city, sum(price * qty) AS revenue FROM people JOIN orders ON people.id = person_id GROUP BY city;

-- a change costs: rows
SELECT sum(n) FROM (SELECT city, count(*) AS n FROM people GROUP BY city) WHERE n > 1;

-- a change costs: rows
SELECT n, count(*) AS cities FROM (SELECT city, count(*) AS n FROM people GROUP BY city) GROUP BY n;

-- a change costs: rows
SELECT DISTINCT city FROM people;

-- a change costs: rows
SELECT DISTINCT city, age > 3 AS old FROM people;

-- a change costs: rows
SELECT DISTINCT unnest(tags) FROM orders;

-- a change costs: rows
SELECT city FROM people GROUP BY city;

-- a change costs: rows
SELECT city, sum(age) + count(*) * 2 AS x FROM people GROUP BY city HAVING sum(age) > 3 AND city <> 'b';

-- a change costs: rows
SELECT max(age) FROM people HAVING max(age) > 2;

-- a change costs: rows
SELECT who, count(*), max(ms) FROM clicks GROUP BY who;

-- a change costs: keys
SELECT city, string_agg(name, ',' ORDER BY name) AS names FROM people GROUP BY city;

-- a change costs: keys
SELECT city, collect_list(name) AS names, collect_set(age) AS ages FROM people GROUP BY city;

-- a change costs: keys
SELECT city, array_agg(age ORDER BY age, id) AS ages, median(score) FROM people GROUP BY city;

-- a change costs: keys
SELECT city, percentile_cont(0.5) WITHIN GROUP (ORDER BY score) AS p, count(*) FROM people GROUP BY city;

-- a change costs: keys
SELECT city, stddev(age), count(DISTINCT name) AS names, count(DISTINCT age) AS ages FROM people GROUP BY city HAVING count(*) > 1;

-- a change costs: keys
SELECT city, arg_max(id, id) AS latest, last(age ORDER BY id) FROM people GROUP BY city;

-- a change costs: all
SELECT median(score), quantile_cont(age, 0.9) FROM people;

-- a change costs: rows
SELECT city, age, count(*) FROM people GROUP BY ROLLUP (city, age);

-- a change costs: rows
SELECT city, age, sum(score), grouping(city, age) AS g FROM people GROUP BY CUBE (city, age);

-- a change costs: rows
SELECT city, age, count(*) FROM people GROUP BY GROUPING SETS ((city), (age), ());

-- a change costs: rows
SELECT city, age, count(*) AS n FROM people GROUP BY city, ROLLUP (age) HAVING count(*) > 1;

-- a change costs: rows
SELECT name, item, price FROM orders JOIN people ON people.id = orders.person_id;

-- a change costs: rows
SELECT p.name, o.item, i.kind FROM people p JOIN orders o ON o.person_id = p.id JOIN items i ON i.name = o.item WHERE o.qty > 1;

-- a change costs: rows
SELECT p.name, o.item FROM people p, orders o WHERE p.id = o.person_id AND p.age > 1 AND (o.qty > 3 OR p.city = 'a');

-- a change costs: rows
SELECT a.name, b.name AS other FROM people a JOIN people b ON a.city = b.city AND a.id < b.id;

-- a change costs: rows
SELECT * FROM people JOIN orders USING (id);

-- a change costs: rows
SELECT id, name FROM people JOIN orders USING (id) WHERE id > 1;

-- a change costs: rows
SELECT name, kind FROM people NATURAL JOIN items;

-- a change costs: rows
SELECT p.name, o.item FROM people p LEFT JOIN orders o ON o.person_id = p.id;

-- a change costs: rows
SELECT o.item, p.name FROM orders o LEFT JOIN people p ON o.person_id = p.id;

-- a change costs: rows
SELECT o.item, p.name FROM orders o LEFT JOIN people p ON o.person_id = p.id AND p.age > 2 AND o.qty > 1;

-- a change costs: rows
SELECT o.item, p.name FROM orders o LEFT JOIN people p ON o.person_id = p.id WHERE p.id IS NULL;

-- a change costs: rows
SELECT o.item, p.name FROM people p RIGHT JOIN orders o ON o.person_id = p.id;

-- a change costs: rows
SELECT o.item, p.name FROM people p FULL JOIN orders o ON o.person_id = p.id;

-- a change costs: rows
SELECT coalesce(p.id, o.id) AS id, p.name, o.item FROM people p FULL OUTER JOIN orders o ON o.id = p.id;

-- a change costs: rows
SELECT id, name, item FROM people FULL JOIN orders USING (id);

-- a change costs: rows
SELECT p.id, b.price FROM people p LEFT JOIN bids b ON b.bidder = p.id AND b.price > p.age;

-- a change costs: rows
SELECT p.id, b.price FROM people p LEFT JOIN bids b ON b.price > p.age;

-- a change costs: keys
SELECT b.price, o.item FROM bids b LEFT JOIN orders o ON b.bidder = o.person_id AND b.price > o.qty;

-- a change costs: rows
SELECT b.price, o.item FROM bids b JOIN orders o ON b.price > o.qty;

-- a change costs: rows
SELECT p.name, i.kind FROM people p CROSS JOIN items i;

-- a change costs: rows
SELECT name FROM people LEFT SEMI JOIN orders ON people.id = orders.person_id;

-- a change costs: rows
SELECT name FROM people LEFT ANTI JOIN orders ON people.id = orders.person_id;

-- a change costs: rows
SELECT p.city, count(o.id) AS n FROM people p LEFT JOIN orders o ON o.person_id = p.id GROUP BY p.city;

-- a change costs: rows
SELECT p.name, t.n FROM people p JOIN (SELECT person_id, count(*) AS n FROM orders GROUP BY person_id) t ON t.person_id = p.id;

-- a change costs: rows
SELECT p.name, coalesce(t.n, 0) AS n FROM people p LEFT JOIN (SELECT person_id, count(*) AS n FROM orders GROUP BY 1) t ON t.person_id = p.id;

-- a change costs: rows
SELECT p.name, v.label FROM people p JOIN (VALUES (1, 'one'), (2, 'two')) AS v(n, label) ON v.n = p.age;

-- a change costs: rows
SELECT p.name, g FROM people p, generate_series(1, 3) AS s(g) WHERE g <= p.age;

-- a change costs: rows
SELECT p.name, o.item, i.weight FROM people p LEFT JOIN orders o ON o.person_id = p.id LEFT JOIN items i ON i.name = o.item;

-- a change costs: rows
SELECT name FROM people WHERE id IN (SELECT person_id FROM orders WHERE qty > 2);

-- a change costs: rows
SELECT name FROM people WHERE id NOT IN (SELECT person_id FROM orders WHERE person_id IS NOT NULL);

-- a change costs: rows
SELECT name FROM people WHERE age NOT IN (SELECT qty FROM orders);

-- a change costs: rows
SELECT name FROM people WHERE EXISTS (SELECT 1 FROM orders WHERE orders.person_id = people.id AND qty > age);

-- a change costs: rows
SELECT name FROM people p WHERE EXISTS (SELECT * FROM orders o WHERE o.person_id = p.id AND o.qty > 1);

-- a change costs: rows
SELECT name FROM people p WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.person_id = p.id);

-- a change costs: rows
SELECT name FROM people WHERE NOT EXISTS (SELECT 1 FROM items WHERE weight > 1);

-- a change costs: rows
SELECT name FROM people WHERE (age, city) IN (SELECT qty, item FROM orders);

-- a change costs: keys
SELECT price FROM bids b WHERE EXISTS (SELECT 1 FROM orders o WHERE o.person_id = b.bidder AND o.qty <> b.price);

-- a change costs: rows
SELECT name, score FROM people WHERE score > (SELECT avg(score) FROM people);

-- a change costs: rows
SELECT name, age - (SELECT max(qty) FROM orders) AS d FROM people;

-- a change costs: rows
SELECT name, (SELECT count(*) FROM orders o WHERE o.person_id = p.id) AS n FROM people p;

-- a change costs: rows
SELECT name, (SELECT sum(qty) + 1 FROM orders o WHERE o.person_id = p.id AND o.qty > 1) AS n FROM people p;

-- a change costs: rows
SELECT id, (SELECT name FROM people p WHERE p.id = o.person_id) AS name FROM orders o;

-- a change costs: rows
SELECT id FROM orders o WHERE price > (SELECT avg(price) FROM orders x WHERE x.item = o.item);

-- a change costs: rows
SELECT city, count(*) AS n FROM people GROUP BY city HAVING count(*) > (SELECT count(*) FROM orders) / 4;

-- a change costs: all
SELECT name, age IN (SELECT qty FROM orders) AS found FROM people;

-- a change costs: all
SELECT name FROM people WHERE age > 5 OR id IN (SELECT person_id FROM orders);

-- a change costs: rows
SELECT name FROM people WHERE id = ANY (SELECT person_id FROM orders);

-- a change costs: keys
SELECT name, city, row_number() OVER (PARTITION BY city ORDER BY id) AS n FROM people;

-- a change costs: keys
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY city ORDER BY age DESC, id) AS n FROM people) WHERE n <= 2;

-- a change costs: keys
SELECT name, city FROM people QUALIFY rank() OVER (PARTITION BY city ORDER BY age) = 1;

-- a change costs: keys
SELECT id, sum(age) OVER (PARTITION BY city ORDER BY id) AS running, lag(age) OVER (PARTITION BY city ORDER BY id) AS before FROM people;

-- a change costs: keys
SELECT auction, price, price - lag(price) OVER (PARTITION BY auction ORDER BY _offset) AS d FROM bids;

-- a change costs: keys
SELECT auction, price / sum(price) OVER (PARTITION BY auction) AS part FROM bids WHERE price > 0;

-- a change costs: all
SELECT id, row_number() OVER (ORDER BY id) AS n FROM people;

-- a change costs: all
SELECT id, avg(age) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m FROM people;

-- a change costs: keys
SELECT city, count(*) AS n, rank() OVER (PARTITION BY count(*) ORDER BY city) AS r FROM people GROUP BY city;

-- a change costs: keys
SELECT DISTINCT ON (city) city, name, id FROM people ORDER BY city, id DESC;

-- a change costs: keys
SELECT DISTINCT ON (auction, bidder) auction, bidder, price FROM bids ORDER BY auction, bidder, _offset DESC;

-- a change costs: all
SELECT id, name FROM people ORDER BY id DESC LIMIT 3;

-- a change costs: all
SELECT name FROM people ORDER BY score NULLS LAST, id LIMIT 2 OFFSET 1;

-- a change costs: all
SELECT city, count(*) AS n FROM people GROUP BY city ORDER BY n DESC, city LIMIT 2;

-- a change costs: all
SELECT id FROM people ORDER BY id FETCH FIRST 2 ROWS ONLY;

-- a change costs: rows
SELECT name FROM people UNION ALL SELECT item FROM orders;

-- a change costs: rows
SELECT name, age FROM people UNION SELECT item, qty FROM orders;

-- a change costs: rows
SELECT age FROM people UNION ALL SELECT price FROM orders UNION ALL SELECT 7;

-- a change costs: keys
SELECT age FROM people EXCEPT SELECT qty FROM orders;

-- a change costs: keys
SELECT age FROM people EXCEPT ALL SELECT qty FROM orders;

-- a change costs: keys
SELECT age FROM people INTERSECT SELECT qty FROM orders;

-- a change costs: keys
SELECT age FROM people INTERSECT ALL SELECT qty FROM orders;

-- a change costs: all
(SELECT age FROM people) UNION (SELECT qty FROM orders) ORDER BY 1 LIMIT 3;

-- a change costs: rows
SELECT n, count(*) FROM (SELECT name AS n FROM people UNION ALL SELECT item FROM orders) GROUP BY n;

-- a change costs: rows
WITH every AS (SELECT person_id AS p FROM orders UNION ALL SELECT bidder FROM bids) SELECT p, count(*) FROM every GROUP BY p;

-- a change costs: rows
SELECT date_trunc('hour', at) AS h, count(*) AS n FROM bids GROUP BY 1;

-- a change costs: rows
SELECT time_bucket(INTERVAL '10 minutes', at) AS w, auction, max(price) FROM bids GROUP BY w, auction;

-- a change costs: rows
SELECT window_start, window_end, count(*) AS n FROM tumble(bids, at, INTERVAL '10 minutes') GROUP BY window_start, window_end;

-- a change costs: rows
SELECT auction, window_start, sum(price) FROM hop(bids, at, INTERVAL '2 minutes', INTERVAL '10 minutes') GROUP BY 1, 2;

-- a change costs: keys
SELECT bidder, window_start, window_end, count(*) AS n, sum(price) AS s
FROM session(bids, at, INTERVAL '3 minutes') PARTITION BY bidder GROUP BY bidder, window_start, window_end;

-- a change costs: keys
SELECT s.*, people.name FROM TABLE(SESSION(TABLE bids PARTITION BY (bidder, price > 3), DESCRIPTOR(at), INTERVAL '100' SECOND)) AS s
LEFT JOIN people ON people.id = s.bidder;

-- a change costs: keys
SELECT window_start, window_end, count(*) AS n FROM session((SELECT * FROM bids WHERE price > 1), at, '2 minutes') GROUP BY 1, 2;

-- a change costs: keys
SELECT bidder, session_window.start, session_window.end, count(*) AS n, max(price) AS most FROM bids WHERE price > 0
GROUP BY bidder, session_window(at, '5 minutes') HAVING count(*) > 1;

-- a change costs: keys
SELECT session_window(b.at, '4 minutes') AS w, p.name AS who, string_agg(b.price, '-' ORDER BY b.price) AS l
FROM bids b JOIN people p ON p.id = b.bidder GROUP BY 1, 2;

-- a change costs: rows
SELECT window_start, window_end, count(*) AS n
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(at), INTERVAL '10' MINUTES, INTERVAL '3' MINUTES)) GROUP BY window_start, window_end;

-- a change costs: rows
SELECT w.window_start, count(*) AS n
FROM TABLE(HOP(DATA => TABLE bids, TIMECOL => DESCRIPTOR(at), SLIDE => INTERVAL '4' MINUTES, SIZE => INTERVAL '6' MINUTES)) AS w GROUP BY 1;

-- a change costs: rows
SELECT b.auction, b.window_end FROM tumble((SELECT * FROM bids WHERE price > 1), at, '1 hour') AS b JOIN people p ON p.id = b.bidder;

-- a change costs: rows
SELECT window.start, window.end, count(*) AS n FROM bids GROUP BY window(at, '10 minutes');

-- a change costs: rows
SELECT window(at, '10 minutes', '5 minutes').start AS s, max(price) FROM bids GROUP BY window(at, '10 minutes', '5 minutes');

-- a change costs: rows
SELECT extract(minute FROM at) AS m, count(*) FROM bids GROUP BY m;
