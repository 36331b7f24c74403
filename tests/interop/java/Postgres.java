// pgjdbc against the Postgres listener: java Postgres.java PORT TABLE. Prints "ok NAME" for each scenario; a failure ends the program.

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.util.Properties;

public class Postgres {
    static void check(String name, Object found, Object expected) {
        if (!String.valueOf(found).equals(String.valueOf(expected)))
            throw new AssertionError(name + ": found " + found + ", expected " + expected);
    }

    static void ok(String name) {
        System.out.println("ok " + name);
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/flights", table = arguments[1];
        for (String mode : new String[] {"extended", "simple", "extendedForPrepared", "extendedCacheEverything"}) {
            Properties properties = new Properties();
            properties.put("user", "anna");
            properties.put("preferQueryMode", mode);
            properties.put("prepareThreshold", "2"); // from the second time on by name, and in binary
            try (Connection connection = DriverManager.getConnection(url, properties)) {
                values(connection, mode);
                ok("values in mode " + mode);
            }
        }
        try (Connection connection = DriverManager.getConnection(url, "anna", "")) {
            rows(connection, table);
            fetchSize(connection);
            errors(connection);
            cancel(connection);
        }
    }

    static void values(Connection connection, String mode) throws SQLException {
        String text = "select cast(? as int) as a, cast(? as bigint) as b, cast(? as double) as c, cast(? as varchar) as d,"
                + " cast(? as decimal(10, 2)) as e, cast(? as boolean) as f, cast(? as date) as g, cast(? as timestamp) as h";
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int round = 0; round < 5; round++) {
                statement.setInt(1, round);
                statement.setLong(2, 1L << 40);
                statement.setDouble(3, 1.5);
                statement.setString(4, "it's");
                statement.setBigDecimal(5, new BigDecimal("12.50"));
                statement.setBoolean(6, true);
                if (mode.equals("simple"))
                    statement.setObject(7, LocalDate.parse("2024-02-29")); // a Date would be the text '2024-02-29 +00'
                else
                    statement.setDate(7, Date.valueOf("2024-02-29"));
                statement.setTimestamp(8, Timestamp.valueOf("2024-02-29 01:02:03.5"));
                try (ResultSet found = statement.executeQuery()) {
                    check("a row", found.next(), true);
                    check("int", found.getInt(1), round);
                    check("bigint", found.getLong("b"), 1L << 40);
                    check("double", found.getDouble(3), 1.5);
                    check("varchar", found.getString(4), "it's");
                    check("decimal", found.getBigDecimal(5), "12.50");
                    check("boolean", found.getBoolean(6), true);
                    check("date", found.getDate(7), "2024-02-29");
                    check("timestamp", found.getTimestamp(8), "2024-02-29 01:02:03.5");
                    ResultSetMetaData columns = found.getMetaData();
                    check("type of int", columns.getColumnType(1), Types.INTEGER);
                    check("type of decimal", columns.getColumnType(5), Types.NUMERIC);
                    check("label", columns.getColumnLabel(8), "h");
                }
            }
        }
        try (PreparedStatement statement = connection.prepareStatement("select cast(? as int) as a")) {
            statement.setNull(1, Types.INTEGER);
            ResultSet found = statement.executeQuery();
            found.next();
            check("null", found.getObject(1), null);
        }
    }

    static void rows(Connection connection, String table) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table " + table + " (a int, b string)");
            check("inserted", statement.executeUpdate("insert into " + table + " values (1, 'a'), (2, null)"), 2);
        }
        try (PreparedStatement statement = connection.prepareStatement("insert into " + table + " values (?, ?)")) {
            for (int number = 3; number < 13; number++) {
                statement.setInt(1, number);
                statement.setString(2, "row " + number);
                statement.addBatch();
            }
            check("batch", statement.executeBatch().length, 10);
        }
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery("select count(*), max(b) from " + table)) {
            found.next();
            check("count", found.getLong(1), 12);
            check("max", found.getString(2), "row 9");
        }
        ok("rows in and out");
    }

    static void fetchSize(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(100);
            ResultSet found = statement.executeQuery("select * from range(1050)");
            long sum = 0;
            while (found.next()) sum += found.getLong(1);
            check("sum", sum, 1050L * 1049 / 2);
        }
        connection.rollback();
        connection.setAutoCommit(true);
        ok("a fetch size");
    }

    static void errors(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("select * from nowhere");
            throw new AssertionError("no error");
        } catch (SQLException error) {
            check("state", error.getSQLState(), "42P01");
        }
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            try {
                statement.executeQuery("select * from nowhere");
            } catch (SQLException error) {
                check("state", error.getSQLState(), "42P01");
            }
            try {
                statement.executeQuery("select 1");
                throw new AssertionError("no error");
            } catch (SQLException error) {
                check("state in a failed transaction", error.getSQLState(), "25P02");
            }
        }
        connection.rollback();
        connection.setAutoCommit(true);
        try (Statement statement = connection.createStatement(); ResultSet found = statement.executeQuery("select 1 as a")) {
            check("a row", found.next(), true);
        }
        ok("errors");
    }

    static void cancel(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            statement.executeQuery("select count(*) from range(100000000) a, range(100000) b where a.range % 7 = b.range % 5");
            throw new AssertionError("no error");
        } catch (SQLException error) {
            check("state", error.getSQLState(), "57014");
        }
        ok("a timeout");
    }
}
