package sqlshape

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		dialect    Dialect
		text, want string
	}{
		{Postgres, "SELECT name FROM users WHERE mail = 'a@b.c' AND age > 17", "SELECT name FROM users WHERE mail = ? AND age > ?"},
		{Postgres, "select *  from\n\tposts order by id limit 20 offset 100000;", "select * from posts order by id limit ? offset ?"},
		{Postgres, `SELECT "u"."id" FROM "public"."users" AS "u" WHERE "u"."x y" = $1`, "SELECT u.id FROM public.users AS u WHERE u.? = ?"},
		{Postgres, "SELECT 1 WHERE a IN (1, 2, 3) OR b = ANY('{1,2}'::int[])", "SELECT ? WHERE a IN (?) OR b = ANY(?::int[])"},
		{Postgres, "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, 'z')", "INSERT INTO t(a, b) VALUES (?)"},
		{Postgres, "SELECT one_column, another_column, a_third_column FROM t WHERE id = 1", "SELECT … FROM t WHERE id = ?"},
		{Postgres, "SELECT extract(epoch FROM now()), another_long_name_of_a_column FROM t", "SELECT … FROM t"},
		{Postgres, "SELECT 'it''s', E'\\n', U&'d\\0061t', B'01', $x$ a 'secret' $x$ /* and more */ FROM t -- who knows", "SELECT ? FROM t"},
		{Postgres, `SELECT 'a\' secret' FROM t`, "SELECT …"},
		{Postgres, `SELECT 'a\\' FROM t`, "SELECT ? FROM t"},
		{Postgres, "SELECT 'not ended", "SELECT …"},
		{Postgres, "SET app.token = abcdef", "SET …"},
		{Postgres, "ALTER ROLE app PASSWORD 'secret'", "ALTER ROLE app PASSWORD ?"},
		{Postgres, "DO $$ BEGIN secret END $$", "DO ?"},
		{MySQL, "SELECT `a` FROM `t` WHERE b = \"secret\" # and so on\nLIMIT 20, 5", "SELECT a FROM t WHERE b = ? LIMIT ?, ?"},
		{MySQL, "SELECT 1--'a\nsecret'", "SELECT ? …"},
		{MySQL, "UPDATE t SET n = n + 1 WHERE id = 0x1F", "UPDATE t SET n = n + ? WHERE id = ?"},
		{MySQL, "SELECT /* a /* b */ ' */ secret' FROM t", "SELECT …"},
		{MySQL, "", ""},
		{Postgres, "SELECT $€$a s3cret b$€$", "SELECT …"},
		{Postgres, "SELECT $é$a s3cret b$é$", "SELECT …"},
		{Postgres, "/*/*/ ' */ */ SELECT 'a s3cret b'", "…"},
		{Postgres, "SELECT 1 --c\r, 'x\ns3cret y'", "SELECT ?"},
		{Postgres, "BEGIN; SET app.key = s3cret", "BEGIN"},
		{Postgres, "ALTER ROLE app SET app.key TO s3cret", "ALTER ROLE app SET …"},
		{Postgres, "SELECT a`b FROM t", "SELECT a …"},
		{Postgres, "WITH x AS (SELECT 1) UPDATE t SET a = 2 FROM x", "WITH x AS(SELECT ?) UPDATE t SET a = ? FROM x"},
		{MySQL, "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ s3cret $$", "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS …"},
		{MySQL, "SELECT a$$b FROM t", "SELECT …"},
		{MySQL, "SELECT /*!40101 'a*/ s3cret x' */ 1", "SELECT …"},
		{MySQL, "SELECT [it's] s3cret'", "SELECT …"},
		{MySQL, "INSERT INTO t SET a = 1 ON DUPLICATE KEY UPDATE a = 2", "INSERT INTO t SET a = ? ON DUPLICATE KEY UPDATE a = ?"},
	} {
		if got := Of(c.text, c.dialect); got != c.want {
			t.Errorf("%q has the shape %q, want %q", c.text, got, c.want)
		}
	}
}

func TestLongStatements(t *testing.T) {
	long := strings.Repeat("näme", 100)
	for _, text := range []string{"SELECT " + long, strings.Repeat("a=b AND ", 10_000), strings.Repeat("(", 100_000), "SELECT " + strings.Repeat("1,", 100_000)} {
		if got := Of(text, Postgres); len(got) > Max || !utf8.ValidString(got) {
			t.Errorf("a shape of %d bytes: %q", len(got), got)
		}
	}
}

// FuzzValuesAreLeftOut puts a value between two pieces of SQL, as the dialect quotes it.
func FuzzValuesAreLeftOut(f *testing.F) {
	f.Add("SELECT * FROM t WHERE a = ", " LIMIT 1", uint8(0))
	f.Add("/* x */ INSERT INTO t VALUES (", "), ('a\\'b')", uint8(1))
	f.Add(`SELECT "a`, `b" -- '`, uint8(2))
	f.Fuzz(func(t *testing.T, before, after string, how uint8) {
		const value = "S3cretValue"
		dialect := Dialect(how & 1)
		text := before + [...]string{"'" + value + "'", " 77" + value, "/*" + value + "*/", "-- " + value + "\n"}[how>>1&3] + after
		got := Of(text, dialect)
		if len(got) > Max || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("%q has the shape %q", text, got)
		}
		// Where what stands before is whole, the value is one.
		s := scanner{rest: before, dialect: dialect}
		for {
			token, whole := s.next()
			if !whole {
				return
			}
			if token == "" {
				break
			}
		}
		if strings.ContainsAny(before, "\\`\"'$/-#") || inLast(before) {
			return // it may end within something
		}
		if strings.Contains(got, value) {
			t.Errorf("%q has the shape %q", text, got)
		}
	})
}

// inLast says whether what is put behind would be part of a word.
func inLast(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return inWord(r) || r == '.' || r == utf8.RuneError
}
