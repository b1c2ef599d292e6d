"""Fetches the price list from the FTP server for each request, as it was done in the old days."""
import ftplib

import web


def work():
    try:
        with ftplib.FTP("10.77.0.2", timeout=5) as ftp:
            ftp.login()
            lines = []
            ftp.retrlines("RETR prices.csv", lines.append)
    except (ftplib.Error, EOFError) as e:
        raise RuntimeError(f"FTP: {e}") from e
    return b"%d prices\n" % len(lines)


web.serve(8000, work)
