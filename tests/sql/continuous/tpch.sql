-- Queries in the shape of TPC-H's 22, over its tables with fewer columns and other constants.

-- table region (r_key): r_key bigint, r_name text
-- table nation (n_key): n_key bigint, n_name text, n_region bigint
-- table supplier (s_key): s_key bigint, s_name text, s_nation bigint, s_bal decimal(12,2), s_comment text
-- table customer (c_key): c_key bigint, c_name text, c_nation bigint, c_bal decimal(12,2), c_phone text, c_segment text
-- table part (p_key): p_key bigint, p_name text, p_brand text, p_type text, p_size int, p_container text
-- table partsupp (ps_part, ps_supp): ps_part bigint, ps_supp bigint, ps_qty int, ps_cost decimal(12,2)
-- table orders (o_key): o_key bigint, o_cust bigint, o_status text, o_total decimal(12,2), o_date date, o_priority text, o_comment text
-- table lineitem (l_order, l_line): l_order bigint, l_line int, l_part bigint, l_supp bigint, l_qty decimal(12,2), l_price decimal(12,2), l_disc decimal(12,2), l_tax decimal(12,2), l_flag text, l_status text, l_ship date, l_commit date, l_receipt date, l_mode text

-- a change costs: rows
SELECT l_flag, l_status, sum(l_qty) AS q, sum(l_price) AS p, sum(l_price * (1 - l_disc)) AS r, sum(l_price * (1 - l_disc) * (1 + l_tax)) AS c,
  avg(l_qty) AS aq, count(*) AS n FROM lineitem WHERE l_ship <= DATE '2026-01-01' GROUP BY 1, 2 ORDER BY 1, 2;

-- a change costs: rows
SELECT s_bal, s_name, n_name, p_key FROM part, supplier, partsupp, nation, region WHERE p_key = ps_part AND s_key = ps_supp
  AND p_size > 1 AND s_nation = n_key AND n_region = r_key AND ps_cost = (SELECT min(ps_cost) FROM partsupp, supplier, nation, region
  WHERE p_key = ps_part AND s_key = ps_supp AND s_nation = n_key AND n_region = r_key);

-- a change costs: all
SELECT l_order, sum(l_price * (1 - l_disc)) AS r, o_date FROM customer, orders, lineitem WHERE c_key = o_cust AND l_order = o_key
  AND o_date < DATE '2025-06-01' GROUP BY l_order, o_date ORDER BY r DESC, o_date LIMIT 10;

-- a change costs: rows
SELECT o_priority, count(*) AS n FROM orders WHERE o_date >= DATE '2024-01-01' AND EXISTS
  (SELECT * FROM lineitem WHERE l_order = o_key AND l_commit < l_receipt) GROUP BY o_priority;

-- a change costs: rows
SELECT n_name, sum(l_price * (1 - l_disc)) AS r FROM customer, orders, lineitem, supplier, nation, region WHERE c_key = o_cust AND l_order = o_key
  AND l_supp = s_key AND c_nation = s_nation AND s_nation = n_key AND n_region = r_key GROUP BY n_name;

-- a change costs: rows
SELECT sum(l_price * l_disc) AS r FROM lineitem WHERE l_ship >= DATE '2024-01-01' AND l_disc BETWEEN 0 AND 5 AND l_qty < 8;

-- a change costs: rows
SELECT n1.n_name AS a, n2.n_name AS b, extract(year FROM l_ship) AS y, sum(l_price * (1 - l_disc)) AS r FROM supplier, lineitem, orders, customer,
  nation n1, nation n2 WHERE s_key = l_supp AND o_key = l_order AND c_key = o_cust AND s_nation = n1.n_key AND c_nation = n2.n_key
  AND ((n1.n_name = 'a' AND n2.n_name = 'b') OR n1.n_name <> n2.n_name) GROUP BY 1, 2, 3;

-- a change costs: rows
SELECT y, sum(CASE WHEN n = 'a' THEN v ELSE 0 END) AS part FROM (SELECT extract(year FROM o_date) AS y, l_price AS v, n2.n_name AS n
  FROM part, supplier, lineitem, orders, nation n2 WHERE p_key = l_part AND s_key = l_supp AND l_order = o_key AND s_nation = n2.n_key) GROUP BY y;

-- a change costs: rows
SELECT n_name, sum(l_price - ps_cost * l_qty) AS s FROM part, supplier, lineitem, partsupp, nation WHERE s_key = l_supp
  AND ps_supp = l_supp AND ps_part = l_part AND p_key = l_part AND s_nation = n_key AND p_name LIKE '%a%' GROUP BY n_name;

-- a change costs: all
SELECT c_key, c_name, sum(l_price * (1 - l_disc)) AS r, n_name FROM customer, orders, lineitem, nation WHERE c_key = o_cust AND l_order = o_key
  AND c_nation = n_key GROUP BY c_key, c_name, n_name ORDER BY r DESC, c_key LIMIT 5;

-- a change costs: rows
SELECT ps_part, sum(ps_cost * ps_qty) AS v FROM partsupp, supplier WHERE ps_supp = s_key GROUP BY ps_part
  HAVING sum(ps_cost * ps_qty) > (SELECT sum(ps_cost * ps_qty) * 0.1 FROM partsupp, supplier WHERE ps_supp = s_key);

-- a change costs: rows
SELECT l_mode, sum(CASE WHEN o_priority = 'a' OR o_priority = 'b' THEN 1 ELSE 0 END) AS high FROM orders, lineitem
  WHERE o_key = l_order AND l_mode IN ('a', 'b') AND l_commit < l_receipt GROUP BY l_mode;

-- a change costs: rows
SELECT c_count, count(*) AS n FROM (SELECT c_key, count(o_key) FROM customer LEFT OUTER JOIN orders ON c_key = o_cust
  AND o_comment NOT LIKE '%a%' GROUP BY c_key) AS c (c_key, c_count) GROUP BY c_count;

-- a change costs: rows
SELECT 100.00 * sum(CASE WHEN p_type LIKE 'a%' THEN l_price * (1 - l_disc) ELSE 0 END) AS a, sum(l_price * (1 - l_disc)) AS b FROM lineitem, part
  WHERE l_part = p_key;

-- a change costs: rows
WITH revenue AS (SELECT l_supp AS no, sum(l_price * (1 - l_disc)) AS total FROM lineitem GROUP BY l_supp)
  SELECT s_key, s_name, total FROM supplier, revenue WHERE s_key = no AND total = (SELECT max(total) FROM revenue);

-- a change costs: rows
SELECT p_brand, p_type, count(DISTINCT ps_supp) AS n FROM partsupp, part WHERE p_key = ps_part AND p_brand <> 'c'
  AND ps_supp NOT IN (SELECT s_key FROM supplier WHERE s_comment LIKE '%b%') GROUP BY p_brand, p_type;

-- a change costs: rows
SELECT sum(l_price) / 7.0 AS y FROM lineitem, part WHERE p_key = l_part AND p_brand <> 'a'
  AND l_qty < (SELECT 0.9 * avg(l_qty) FROM lineitem WHERE l_part = p_key);

-- a change costs: all
SELECT c_name, o_key, o_total, sum(l_qty) AS q FROM customer, orders, lineitem WHERE o_key IN (SELECT l_order FROM lineitem
  GROUP BY l_order HAVING sum(l_qty) > 3) AND c_key = o_cust AND o_key = l_order GROUP BY 1, 2, 3 ORDER BY o_total DESC, o_key LIMIT 9;

-- a change costs: rows
SELECT sum(l_price * (1 - l_disc)) AS r FROM lineitem, part WHERE (p_key = l_part AND p_brand = 'a' AND l_qty < 5)
  OR (p_key = l_part AND p_brand = 'b' AND p_size BETWEEN 1 AND 5);

-- a change costs: rows
SELECT s_name FROM supplier, nation WHERE s_key IN (SELECT ps_supp FROM partsupp WHERE ps_part IN (SELECT p_key FROM part
  WHERE p_name LIKE 'a%') AND ps_qty > (SELECT 0.5 * sum(l_qty) FROM lineitem WHERE l_part = ps_part AND l_supp = ps_supp))
  AND s_nation = n_key;

-- a change costs: all
SELECT s_name, count(*) AS n FROM supplier, lineitem l1, orders, nation WHERE s_key = l1.l_supp AND o_key = l1.l_order
  AND l1.l_receipt > l1.l_commit AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_order = l1.l_order AND l2.l_supp <> l1.l_supp)
  AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_order = l1.l_order AND l3.l_supp <> l1.l_supp AND l3.l_receipt > l3.l_commit)
  AND s_nation = n_key GROUP BY s_name ORDER BY n DESC, s_name LIMIT 100;

-- a change costs: rows
SELECT code, count(*) AS n, sum(c_bal) AS total FROM (SELECT substring(c_phone FROM 1 FOR 1) AS code, c_bal FROM customer
  WHERE c_bal > (SELECT avg(c_bal) FROM customer WHERE c_bal > 0) AND NOT EXISTS (SELECT * FROM orders WHERE o_cust = c_key)) AS t
  GROUP BY code;
