-- The queries of Nexmark, over its three streams. q11 and q12 have windows of sessions and of processing time; q10 and q13 need files.

-- table person (): id bigint not null, name text, email text, city text, state text, at timestamp not null
-- table auction (): id bigint not null, item text, initial bigint, reserve bigint, at timestamp not null, expires timestamp, seller bigint, category bigint
-- table bid (): auction bigint not null, bidder bigint not null, price bigint, channel text, url text, at timestamp not null

-- a change costs: rows
SELECT auction, bidder, price, at FROM bid;

-- a change costs: rows
SELECT auction, bidder, 0.908 * price AS price, at FROM bid;

-- a change costs: rows
SELECT auction, price FROM bid WHERE auction IN (1, 3, 5) OR auction % 4 = 0;

-- a change costs: rows
SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
  WHERE a.category = 2 AND (p.state = 'a' OR p.state = 'b' OR p.state = 'c');

-- a change costs: rows
SELECT q.category, avg(q.final) AS price FROM (SELECT max(b.price) AS final, a.category FROM auction a, bid b
  WHERE a.id = b.auction AND b.at BETWEEN a.at AND a.expires GROUP BY a.id, a.category) q GROUP BY q.category;

-- a change costs: rows
WITH n AS (SELECT auction, window_start AS s, count(*) AS num FROM hop(bid, at, INTERVAL '10 minutes', INTERVAL '20 minutes')
  GROUP BY auction, window_start)
  SELECT n.auction, n.num, n.s FROM n JOIN (SELECT max(num) AS most, s FROM n GROUP BY s) m ON n.s = m.s AND n.num >= m.most;

-- a change costs: keys
SELECT seller, avg(price) OVER (PARTITION BY seller ORDER BY at, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS mean
  FROM (SELECT a.id, a.seller, max(b.at) AS at, max(b.price) AS price FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.at BETWEEN a.at AND a.expires GROUP BY a.id, a.seller);

-- a change costs: rows
SELECT b.auction, b.price, b.bidder, b.at FROM bid b JOIN (SELECT max(price) AS most, window_end AS e
  FROM tumble(bid, at, INTERVAL '10 minutes') GROUP BY window_end) m
  ON b.price = m.most AND b.at >= m.e - INTERVAL '10 minutes' AND b.at < m.e;

-- a change costs: rows
SELECT p.id, p.name, p.s FROM (SELECT id, name, window_start AS s FROM tumble(person, at, INTERVAL '10 minutes') GROUP BY 1, 2, 3) p
  JOIN (SELECT seller, window_start AS s FROM tumble(auction, at, INTERVAL '10 minutes') GROUP BY 1, 2) a
  ON p.id = a.seller AND p.s = a.s;

-- a change costs: keys
SELECT id, item, auction, bidder, price FROM (SELECT a.*, b.auction, b.bidder, b.price, b.at AS bid_at,
  row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.at, b.bidder, a.item, a.at, a.seller) AS n
  FROM auction a, bid b WHERE a.id = b.auction AND b.at BETWEEN a.at AND a.expires) WHERE n <= 1;

-- a change costs: rows
SELECT auction, 0.908 * price AS price, CASE WHEN hour(at) BETWEEN 8 AND 18 THEN 'day' WHEN hour(at) <= 6 THEN 'night'
  ELSE 'other' END AS time, length(channel) AS n FROM bid WHERE 0.908 * price > 1;

-- a change costs: rows
SELECT strftime(at, '%Y-%m-%d') AS day, count(*) AS total, count(*) FILTER (WHERE price < 3) AS low,
  count(DISTINCT bidder) AS bidders, count(DISTINCT bidder) FILTER (WHERE price < 3) AS low_bidders,
  count(DISTINCT auction) AS auctions FROM bid GROUP BY 1;

-- a change costs: rows
SELECT channel, strftime(at, '%Y-%m-%d') AS day, max(strftime(at, '%H:%M')) AS minute, count(*) AS total,
  count(DISTINCT bidder) AS bidders, count(DISTINCT auction) FILTER (WHERE price > 3) AS auctions FROM bid GROUP BY 1, 2;

-- a change costs: rows
SELECT auction, date_trunc('day', at) AS day, count(*) AS total, count(*) FILTER (WHERE price >= 4) AS high,
  min(price) AS least, max(price) AS most, avg(price) AS mean, sum(price) AS s FROM bid GROUP BY 1, 2;

-- a change costs: keys
SELECT auction, bidder, price, channel FROM (SELECT *, row_number() OVER
  (PARTITION BY bidder, auction ORDER BY at DESC, _offset) AS n FROM bid) WHERE n <= 1;

-- a change costs: keys
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, _offset) AS n FROM bid)
  WHERE n <= 10;

-- a change costs: rows
SELECT auction, bidder, price, b.at, item, seller FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 1;

-- a change costs: rows
SELECT auction, CASE lower(channel) WHEN 'a' THEN '0' WHEN 'b' THEN '1' ELSE substr(url, 1, 1) END AS channel_id FROM bid
  WHERE url IS NOT NULL OR lower(channel) IN ('a', 'b');

-- a change costs: rows
SELECT auction, split_part(url, '/', 4) AS d1, split_part(url, '/', 5) AS d2 FROM bid;
