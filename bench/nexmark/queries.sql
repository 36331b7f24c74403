-- The queries of Nexmark. `-- qN` begins a query. `at most once` is nowhere assumed: ties are broken by `_offset`.
-- q6 takes the last ten closed auctions of a seller; q10 has the columns of its partitions instead of files; q12's time is the broker's.

-- q0
SELECT auction, bidder, price, date_time, extra FROM bid;

-- q1
SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid;

-- q2
SELECT auction, price FROM bid WHERE auction % 123 = 0;

-- q3
SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
  WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA');

-- q4
SELECT q.category, avg(q.final) AS price FROM (SELECT max(b.price) AS final, a.category FROM auction a, bid b
  WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) q GROUP BY q.category;

-- q5
WITH n AS (SELECT auction, window_start AS s, count(*) AS num FROM hop(bid, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds')
  GROUP BY auction, window_start)
  SELECT n.auction, n.num, n.s FROM n JOIN (SELECT max(num) AS most, s FROM n GROUP BY s) m ON n.s = m.s AND n.num >= m.most;

-- q6
SELECT seller, avg(price) OVER (PARTITION BY seller ORDER BY date_time, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS mean
  FROM (SELECT a.id, a.seller, max(b.date_time) AS date_time, max(b.price) AS price FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.seller);

-- q7
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN (SELECT max(price) AS most, window_end AS e
  FROM tumble(bid, date_time, INTERVAL '10 seconds') GROUP BY window_end) m
  ON b.price = m.most AND b.date_time >= m.e - INTERVAL '10 seconds' AND b.date_time < m.e;

-- q8
SELECT p.id, p.name, p.s FROM (SELECT id, name, window_start AS s FROM tumble(person, date_time, INTERVAL '10 seconds') GROUP BY 1, 2, 3) p
  JOIN (SELECT seller, window_start AS s FROM tumble(auction, date_time, INTERVAL '10 seconds') GROUP BY 1, 2) a
  ON p.id = a.seller AND p.s = a.s;

-- q9
SELECT id, item_name, seller, auction, bidder, price, bid_time FROM (SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_time,
  row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b._partition, b._offset) AS n
  FROM auction a, bid b WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) WHERE n <= 1;

-- q10
SELECT auction, bidder, price, date_time, extra, strftime(date_time, '%Y-%m-%d') AS day, strftime(date_time, '%H:%M') AS minute FROM bid;

-- q12
SELECT bidder, count(*) AS bids, window_start AS s FROM tumble(bid, _timestamp, INTERVAL '10 seconds') GROUP BY bidder, window_start;

-- q14
SELECT auction, bidder, 0.908 * price AS price, CASE WHEN hour(date_time) BETWEEN 8 AND 18 THEN 'day'
  WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'night' ELSE 'other' END AS time, date_time, extra,
  length(extra) - length(replace(extra, 'c', '')) AS c_counts FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;

-- q15
SELECT strftime(date_time, '%Y-%m-%d') AS day, count(*) AS total, count(*) FILTER (WHERE price < 10000) AS low,
  count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle, count(*) FILTER (WHERE price >= 1000000) AS high,
  count(DISTINCT bidder) AS bidders, count(DISTINCT bidder) FILTER (WHERE price < 10000) AS low_bidders,
  count(DISTINCT auction) AS auctions, count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS high_auctions FROM bid GROUP BY 1;

-- q16
SELECT channel, strftime(date_time, '%Y-%m-%d') AS day, max(strftime(date_time, '%H:%M')) AS minute, count(*) AS total,
  count(*) FILTER (WHERE price < 10000) AS low, count(DISTINCT bidder) AS bidders, count(DISTINCT auction) AS auctions
  FROM bid GROUP BY 1, 2;

-- q17
SELECT auction, date_trunc('day', date_time) AS day, count(*) AS total, count(*) FILTER (WHERE price < 10000) AS low,
  count(*) FILTER (WHERE price >= 1000000) AS high, min(price) AS least, max(price) AS most, avg(price) AS mean, sum(price) AS s
  FROM bid GROUP BY 1, 2;

-- q18
SELECT auction, bidder, price, channel, url, date_time, extra FROM (SELECT *, row_number() OVER
  (PARTITION BY bidder, auction ORDER BY date_time DESC, _partition, _offset) AS n FROM bid) WHERE n <= 1;

-- q19
SELECT auction, bidder, price, channel, date_time, n FROM (SELECT *, row_number() OVER
  (PARTITION BY auction ORDER BY price DESC, _partition, _offset) AS n FROM bid) WHERE n <= 10;

-- q20
SELECT auction, bidder, price, channel, url, b.date_time, item_name, seller FROM bid b JOIN auction a ON b.auction = a.id
  WHERE a.category = 10;

-- q21
SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
  WHEN 'baidu' THEN '3' ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') END AS channel_id FROM bid
  WHERE url ~ '(&|^)channel_id=' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu');

-- q22
SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
  FROM bid;
